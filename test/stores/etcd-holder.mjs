// Holds a lock until it is lost, and prints the reason. Only an idle socket keeps it alive.
import { connect as connectSocket } from "node:net";
import { Holdfast } from "../../dist/index.js";
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

const url = new URL(process.argv[2] ?? "");
const locks = new Holdfast(await openEtcdStore(url));
const lease = await locks.mutex("m").acquire();
const socket = connectSocket(Number(url.port), url.hostname);
lease.signal.addEventListener("abort", async () => {
  process.stdout.write(`${lease.signal.reason.reason}\n`);
  socket.destroy();
  await locks.close();
});
process.stdout.write(`${lease.token}\n`);
