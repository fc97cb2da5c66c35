import { expect, test } from "vitest";
import { Zxid } from "./zxid.js";

test("an event is later than the reply before it, and not later than the next transaction", () => {
  const reply = new Zxid(5n);
  const event = reply.later;
  const next = new Zxid(6n);
  expect([reply.isBefore(event), event.isBefore(reply)]).toEqual([true, false]);
  expect([event.isBefore(next), next.isBefore(event)]).toEqual([true, false]);
  expect([reply.isBefore(reply), event.isBefore(event)]).toEqual([false, false]);
});
