import { holdForever } from "../takeover.js";
import { candidate } from "./candidates.js";

const { candidate: name, folder, lock, ttlMs } = JSON.parse(process.argv[2] ?? "{}");
await holdForever(candidate(name).open(folder, ttlMs), lock);
