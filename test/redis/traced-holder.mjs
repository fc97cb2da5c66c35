// Holds a lock with traces on until it is told to let go, and tells its parent the trace.
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { connect } from "../../dist/index.js";
import { startTraces } from "../../dist/telemetry/opentelemetry/index.js";

const exporter = new InMemorySpanExporter();
startTraces({
  tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
});
const locks = await connect(process.argv[2] ?? "");
const lease = await locks.mutex("m").acquire();
const [span] = exporter.getFinishedSpans();
process.send?.(span?.spanContext());
process.once("message", async () => {
  await lease.release();
  await locks.close();
  process.disconnect();
});
