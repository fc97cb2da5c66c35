/** The conformance kit on three nodes; five are in a file of their own, to run beside it. */
import { forEachClient } from "./redlock-conformance.js";
import { runConformance } from "./run-conformance.js";

forEachClient(3, "ioredis 6", (harness) => {
  runConformance(harness);
});
