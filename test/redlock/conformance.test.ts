/** The conformance kit on three nodes; another file runs it on five nodes in parallel. */

import { runConformance } from "../stores/run-conformance.js";
import { forEachClient } from "./conformance.js";

forEachClient(3, "ioredis 6", (harness) => {
  runConformance(harness);
});
