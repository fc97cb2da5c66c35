"""Takes locks of redis-py, as told on standard input: "acquire name", "try name", "release"."""
import sys

from redis import Redis
from redis.exceptions import LockError

TTL_SECONDS = 30

host, port = sys.argv[1].split(":")
client = Redis(host=host, port=int(port))
held = None
print("ready", flush=True)
for line in sys.stdin:
    verb, *what = line.split()
    if verb == "release":
        try:
            held.release()
            print("released", flush=True)
        except LockError:
            print("lost", flush=True)
        continue
    lock = client.lock(what[0], timeout=TTL_SECONDS, sleep=0.02)
    is_granted = lock.acquire(blocking=verb == "acquire")
    if is_granted:
        held = lock
    print("granted" if is_granted else "busy", flush=True)
