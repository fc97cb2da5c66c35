import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { ManualPort } from "../../../../test/fixtures/manual-port.js";
import { Ensemble } from "./ensemble.js";
import { SessionClient } from "./session-client.js";

it("ends the calls that wait for a connection when it is closed", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const settings = { tls: null, chroot: "", credentials: [] };
  const manual = new ManualPort();
  const ensemble = new Ensemble([{ host: "127.0.0.1", port }], settings, manual);
  const client = new SessionClient(ensemble, 10_000);
  const waiting = client.connected(5_000);
  await client.close(1_000);
  // No time has passed: a timer that is left would keep the process alive.
  await expect(waiting).rejects.toMatchObject({ code: "closed" });
  await manual.advance(10_000);
  silent.close();
});
