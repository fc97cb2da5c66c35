"""The Python contestants: `main.py CANDIDATE URL` takes one order per line, answers each with one."""

import json
import resource
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import redis
from kazoo.client import KazooClient

TTL_S = 30
# Peers poll. This is far more often than their defaults, in their favour.
RETRY_S = 0.01
COMPARE_AND_DELETE = (
    'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0'
)


def connect(address):
    host, port = address.split(":")
    # One for each of the threads that lock at once: by default the 101st would be refused.
    return redis.Redis(host, int(port), max_connections=2_000)


def open_raw(address):
    client = connect(address)
    script = client.register_script(COMPARE_AND_DELETE)

    def acquire(name):
        value = uuid.uuid4().hex
        if not client.set(name, value, nx=True, px=TTL_S * 1000):
            raise RuntimeError("the raw pair met contention")
        return lambda: script(keys=[name], args=[value])

    return acquire


def open_redis_py(address):
    client = connect(address)

    def acquire(name):
        lock = client.lock(name, timeout=TTL_S, sleep=RETRY_S)
        lock.acquire()
        return lock.release

    return acquire


def connect_zookeeper(address):
    client = KazooClient(hosts=address, timeout=TTL_S)
    client.start()
    return client


def open_zookeeper_raw(address):
    client = connect_zookeeper(address)
    client.ensure_path("/raw-python")

    def acquire(name):
        path = client.create(f"/raw-python/{name}-", ephemeral=True, sequence=True)
        return lambda: client.delete(path)

    return acquire


def open_kazoo(address):
    client = connect_zookeeper(address)
    locks = {}

    def acquire(name):
        lock = locks.setdefault(name, client.Lock(f"/kazoo/{name}"))
        lock.acquire()
        return lock.release

    return acquire


CANDIDATES = {
    "raw": open_raw,
    "redis-py": open_redis_py,
    "zookeeper raw": open_zookeeper_raw,
    "kazoo": open_kazoo,
}


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e6


def cpu_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e6


def pairs(acquire, order):
    """Runs several tasks at once, each on a name of its own."""

    def task(index):
        for _ in range(order["pairs"]):
            acquire(f"{order['lock']}:{index}")()

    together(order["tasks"], task)
    return {}


def turns(acquire, order):
    """Contends for one name with several workers and tells every hold."""
    until_ms = now_ms() + order["forMs"]
    hold_ms = order.get("holdMs") or [0]

    def worker(_):
        own = []
        while now_ms() < until_ms:
            asked_ms = now_ms()
            release = acquire(order["lock"])
            held_ms = now_ms()
            time.sleep(hold_ms[len(own) % len(hold_ms)] / 1000)
            own.append([asked_ms, held_ms, now_ms()])
            release()
            time.sleep(order.get("restMs", 0) / 1000)
        return own

    return {"holds": together(order["workers"], worker)}


def together(count, task):
    if count == 1:
        return [task(0)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(task, range(count)))


def main():
    acquire = CANDIDATES[sys.argv[1]](sys.argv[2])
    print('"ready"', flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        start_ms, start_us = now_ms(), cpu_us()
        answer = (turns if order["do"] == "turns" else pairs)(acquire, order)
        answer |= {"elapsedMs": now_ms() - start_ms, "cpuUs": cpu_us() - start_us}
        print(json.dumps(answer), flush=True)


main()
