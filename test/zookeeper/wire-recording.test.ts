import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { askStatus } from "../../src/stores/zookeeper/client.js";
import { localRuntime } from "../../src/time/runtime.js";
import { startProxy } from "../faults/proxy.js";
import {
  CONVERSATION,
  converse,
  plain,
  type Recording,
} from "../fixtures/zookeeper-conversation.js";
import { startZookeeper, zookeeperMissing } from "../servers/zookeeper.js";
import { WireTrial } from "./wire-trial.js";

const missing = zookeeperMissing();
const file = join(import.meta.dirname, "../fixtures/zookeeper-conversation.json");

/** The session, times and transactions differ from run to run; sizes and texts do not. */
const shape = ({ frames, results }: Recording) => ({
  frames: frames.map(({ from, hex }) => `${from} ${hex.length}`),
  results: JSON.parse(
    JSON.stringify(results, (_, value) => {
      if (typeof value === "number" && value > 1e12) return "a time";
      return typeof value === "string" && /^\d+n$/.test(value) ? "a number" : value;
    }),
  ),
});

async function record(): Promise<Recording> {
  await using server = await startZookeeper();
  await using proxy = await startProxy({ targetPort: server.port, framing: "zookeeper" });
  const frames: { from: "client" | "server"; hex: string }[] = [];
  proxy.onRequest(({ bytes }) => {
    frames.push({ from: "client", hex: bytes.toString("hex") });
    return undefined;
  });
  proxy.onReply(({ bytes }) => {
    frames.push({ from: "server", hex: bytes.toString("hex") });
    return undefined;
  });
  const connection = await new WireTrial(proxy.port).connect(CONVERSATION);
  const results = plain(await converse(connection));
  const { version } = await askStatus(
    server.address,
    { tls: null },
    { limitMs: 5_000, runtime: localRuntime },
  );
  return { version, frames, results };
}

describe.skipIf(missing)(`the recorded conversation${missing ? ` (${missing})` : ""}`, () => {
  // HOLDFAST_RECORD=1 records it anew.
  it("is what a server of the same version says today", async ({ skip }) => {
    const today = await record();
    if (process.env.HOLDFAST_RECORD) writeFileSync(file, `${JSON.stringify(today, null, 2)}\n`);
    const recorded: Recording = JSON.parse(readFileSync(file, "utf8"));
    skip(today.version !== recorded.version, `recorded from ${recorded.version}`);
    expect(shape(today)).toEqual(shape(recorded));
  });
});
