// A process that takes a lock, closes when it is told to, and has nothing left to do then.
import { connect } from "../../dist/index.js";

const locks = await connect(process.argv[2] ?? "");
await locks.mutex("m").run(async () => {});
process.send?.("ready");
process.once("message", async () => {
  await locks.close();
  process.send?.("closed", () => process.disconnect());
});
