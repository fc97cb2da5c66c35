/** The conformance kit on one server, which decides alone. */
import { forEachClient } from "./redlock-conformance.js";
import { runConformance } from "./run-conformance.js";

forEachClient(1, "ioredis 6", (harness) => {
  runConformance(harness);
});
