/** The conformance kit on one server, which decides alone. */

import { runConformance } from "../stores/run-conformance.js";
import { forEachClient } from "./conformance.js";

forEachClient(1, "ioredis 6", (harness) => {
  runConformance(harness);
});
