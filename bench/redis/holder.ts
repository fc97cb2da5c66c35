/** A process that takes a lock, says so, and keeps it until it is killed. */
import { candidate } from "./candidates.js";

const { candidate: name, port, lock, ttlMs } = JSON.parse(process.argv[2] ?? "{}");
const locker = await candidate(name).open(port, ttlMs);
await locker.acquire(lock);
process.send?.("held");
setInterval(() => {}, 1_000);
