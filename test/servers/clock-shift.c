/* Shifts the wall clock of the program it is preloaded into, by the microseconds in a file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t shift_us(void) {
  static volatile int64_t *shift = NULL;
  if (shift == NULL) {
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return 0;
    void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) return 0;
    shift = map;
  }
  return *shift;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  static int (*real)(struct timeval *, void *) = NULL;
  if (real == NULL) real = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(tv, zone);
  int64_t us = (int64_t)tv->tv_sec * 1000000 + tv->tv_usec + shift_us();
  tv->tv_sec = us / 1000000;
  tv->tv_usec = us % 1000000;
  return result;
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
  static int (*real)(clockid_t, struct timespec *) = NULL;
  if (real == NULL) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, ts);
  if (clock == CLOCK_REALTIME) {
    int64_t us = (int64_t)ts->tv_sec * 1000000 + ts->tv_nsec / 1000 + shift_us();
    ts->tv_sec = us / 1000000;
    ts->tv_nsec = (us % 1000000) * 1000 + ts->tv_nsec % 1000;
  }
  return result;
}

time_t time(time_t *into) {
  struct timeval tv;
  gettimeofday(&tv, NULL);
  if (into) *into = tv.tv_sec;
  return tv.tv_sec;
}
