/** The conformance kit on five nodes. */

import { runConformance } from "../stores/run-conformance.js";
import { forEachClient } from "./conformance.js";

forEachClient(5, "node-redis 6", (harness) => {
  runConformance(harness);
});
