import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { SessionClient } from "../../src/stores/zookeeper/watches.js";
import { exists } from "../../src/stores/zookeeper/wire/requests.js";
import { networkRuntime } from "../../src/time/runtime.js";

// A process that has a session and a watch, and then nothing to do.

// The wait for the message keeps the process alive until then.
process.once("message", () => process.disconnect());

const settings = { tls: null, chroot: "", credentials: [] };
const address = { host: "127.0.0.1", port: Number(process.argv[2]) };
const client = new SessionClient(new Ensemble([address], settings, networkRuntime()), 6_000);
const connection = await client.connected(10_000);
await connection.send(exists("/a", () => {}));
process.send?.("ready");
