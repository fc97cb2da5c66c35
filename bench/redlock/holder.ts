import { holdForever } from "../takeover.js";
import { open } from "./candidates.js";

const { candidate, ports, lock, ttlMs } = JSON.parse(process.argv[2] ?? "{}");
await holdForever(open(candidate, ports, ttlMs), lock);
