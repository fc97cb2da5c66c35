import { expect, test } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import type { Driver, OwnConnection } from "./client.js";
import { PrimaryConnection } from "./primary-connection.js";

const PING_EVERY_MS = 10_000;
const PINGS = 500;

test("pings leave nothing behind on a connection that stays open", async () => {
  const runtime = new ManualRuntime();
  let cancelled = 0;
  const timers = {
    ...runtime.timers,
    after: (...args: Parameters<typeof runtime.timers.after>) => {
      const timer = runtime.timers.after(...args);
      const cancel = (): void => {
        cancelled += 1;
        timer.cancel();
      };
      return { ...timer, cancel };
    },
  };
  const sent: string[] = [];
  const connection: OwnConnection = {
    backendPid: 1,
    send: async ({ text }) => {
      sent.push(text);
      return "UTF8 f t";
    },
    onNotification() {},
    onNotice() {},
    onClose() {},
    close() {},
  };
  const driver: Driver = {
    servers: ["one"],
    open: () => ({ opened: Promise.resolve(connection), abandon() {} }),
  };
  const primary = new PrimaryConnection(driver, { ...runtime, timers }, async () => {});
  await primary.ready();
  await runtime.advance(PINGS * PING_EVERY_MS);
  expect(sent.length).toBeGreaterThan(PINGS / 2);
  const before = cancelled;
  primary.close();
  await runtime.advance(1);
  // Each reaction that a ping left on the connection would cancel a timer of its own.
  expect(cancelled - before).toBeLessThanOrEqual(2);
  expect(runtime.alarms).toBe(0);
});
