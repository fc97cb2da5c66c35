/** The conformance kit on five nodes. */
import { forEachClient } from "./redlock-conformance.js";
import { runConformance } from "./run-conformance.js";

forEachClient(5, "node-redis 6", (harness) => {
  runConformance(harness);
});
