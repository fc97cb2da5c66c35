// The Go contestants: `main CANDIDATE URL` takes one order per line and answers each with one line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const ttl = 30 * time.Second

// Peers poll. This is far more often than their defaults, in their favour.
const retryEvery = 10 * time.Millisecond

// Locker acquires a lock and returns its release.
type Locker func(ctx context.Context, name string) (func() error, error)

type order struct {
	Do      string  `json:"do"`
	Lock    string  `json:"lock"`
	Tasks   int     `json:"tasks"`
	Pairs   int     `json:"pairs"`
	ForMs   float64 `json:"forMs"`
	HoldMs  []int   `json:"holdMs"`
	Workers int     `json:"workers"`
	RestMs  int     `json:"restMs"`
}

type answer struct {
	ElapsedMs float64        `json:"elapsedMs"`
	CPUUs     float64        `json:"cpuUs"`
	Holds     [][][3]float64 `json:"holds,omitempty"`
	Error     string         `json:"error,omitempty"`
}

func main() {
	open, known := candidates[os.Args[1]]
	if !known {
		fail(fmt.Errorf("no candidate %s", os.Args[1]))
	}
	locker, err := open(os.Args[2])
	if err != nil {
		fail(err)
	}
	fmt.Println(`"ready"`)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var given order
		if err := json.Unmarshal(input.Bytes(), &given); err != nil {
			fail(err)
		}
		text, _ := json.Marshal(run(locker, given))
		fmt.Println(string(text))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(locker Locker, given order) answer {
	cpu, start := cpuUs(), nowMs()
	var result answer
	var err error
	if given.Do == "turns" {
		result.Holds, err = turns(locker, given)
	} else {
		err = pairs(locker, given)
	}
	if err != nil {
		result.Error = err.Error()
	}
	result.ElapsedMs, result.CPUUs = nowMs()-start, cpuUs()-cpu
	return result
}

// pairs runs several tasks at once, each on a name of its own.
func pairs(locker Locker, given order) error {
	return each(given.Tasks, func(task int) error {
		name := fmt.Sprintf("%s:%d", given.Lock, task)
		for pair := 0; pair < given.Pairs; pair++ {
			release, err := locker(context.Background(), name)
			if err != nil {
				return err
			}
			if err := release(); err != nil {
				return err
			}
		}
		return nil
	})
}

// turns contends for one name with several workers and tells every hold.
func turns(locker Locker, given order) ([][][3]float64, error) {
	holds := make([][][3]float64, given.Workers)
	until := nowMs() + given.ForMs
	err := each(given.Workers, func(worker int) error {
		for turn := 0; nowMs() < until; turn++ {
			asked := nowMs()
			release, err := locker(context.Background(), given.Lock)
			if err != nil {
				return err
			}
			held := nowMs()
			if len(given.HoldMs) > 0 {
				time.Sleep(time.Duration(given.HoldMs[turn%len(given.HoldMs)]) * time.Millisecond)
			}
			holds[worker] = append(holds[worker], [3]float64{asked, held, nowMs()})
			if err := release(); err != nil {
				return err
			}
			time.Sleep(time.Duration(given.RestMs) * time.Millisecond)
		}
		return nil
	})
	return holds, err
}

func each(count int, task func(int) error) error {
	var group sync.WaitGroup
	errors := make(chan error, count)
	for index := 0; index < count; index++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := task(index); err != nil {
				errors <- err
			}
		}()
	}
	group.Wait()
	close(errors)
	return <-errors
}

// nowMs is the monotonic clock that all processes of a machine share.
func nowMs() float64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return float64(at.Sec)*1e3 + float64(at.Nsec)/1e6
}

func cpuUs() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3
}
