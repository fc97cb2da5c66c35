// Holds a lock. With "wait" an idle socket keeps the process alive until the lock is lost, and it
// prints the reason; with "end" nothing does.

import { once } from "node:events";
import { connect as connectSocket, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "../../dist/index.js";
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

const url = new URL(process.argv[2] ?? "");
const locks = new Holdfast(await openEtcdStore(url));
const lease = await locks.mutex("m").acquire();
if (process.argv[3] === "end") {
  // By now the holder watches its entry.
  await sleep(500);
  process.stdout.write(`${lease.token}\n`);
} else await waitForLoss();

async function waitForLoss() {
  // Not to etcd, which closes a connection on which nothing is sent.
  const server = createServer((peer) => peer.unref())
    .listen(0, "127.0.0.1")
    .unref();
  await once(server, "listening");
  const socket = connectSocket(server.address().port, "127.0.0.1");
  lease.signal.addEventListener("abort", async () => {
    process.stdout.write(`${lease.signal.reason.reason}\n`);
    socket.destroy();
    await locks.close();
  });
  process.stdout.write(`${lease.token}\n`);
}
