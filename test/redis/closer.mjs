// A process that takes a lock, and closes its client on a message.
import { connect } from "../../dist/index.js";

const locks = await connect(process.argv[2] ?? "");
await locks.mutex("m").run(async () => {});
process.send?.("ready");
process.once("message", async () => {
  await locks.close();
  process.send?.("closed", () => process.disconnect());
});
