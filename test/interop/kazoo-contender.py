"""Takes locks of kazoo, as told on standard input: "acquire mutex /path", "try write /path", "release"."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

SESSION_SECONDS = 4
TRY_SECONDS = 0.5

client = KazooClient(hosts=sys.argv[1], timeout=SESSION_SECONDS)
client.start()
kinds = {"mutex": client.Lock, "write": client.WriteLock, "read": client.ReadLock}
held = None
print("ready", flush=True)
for line in sys.stdin:
    verb, *what = line.split()
    if verb == "release":
        held.release()
        print("released", flush=True)
        continue
    kind, path = what
    lock = kinds[kind](path)
    try:
        is_granted = lock.acquire(timeout=TRY_SECONDS if verb == "try" else None)
    except LockTimeout:
        is_granted = False
    if is_granted:
        held = lock
    print("granted" if is_granted else "busy", flush=True)
client.stop()
