import { holdForever } from "../takeover.js";
import { candidate } from "./candidates.js";

const { candidate: name, port, lock, ttlMs } = JSON.parse(process.argv[2] ?? "{}");
await holdForever(await candidate(name).open(port, ttlMs), lock);
