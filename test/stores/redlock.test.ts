/** The conformance kit on three nodes; another file runs it on five nodes in parallel. */
import { forEachClient } from "./redlock-conformance.js";
import { runConformance } from "./run-conformance.js";

forEachClient(3, "ioredis 6", (harness) => {
  runConformance(harness);
});
