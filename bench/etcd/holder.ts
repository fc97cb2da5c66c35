import { holdForever } from "../takeover.js";
import { candidate } from "./candidates.js";

const { candidate: name, url, lock, ttlMs } = JSON.parse(process.argv[2] ?? "{}");
await holdForever(await candidate(name).open(url, ttlMs), lock);
