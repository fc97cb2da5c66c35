import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import { systemTimers } from "../time/timers.js";
import { HostedGrant } from "./hosted-grant.js";
import type { FromThread } from "./messages.js";
import { Backlog, Outbox } from "./outbox.js";

const RENEWALS = 30_000;

/** A grant in the thread of its store, and the messages that wait for a blocked caller. */
function kept() {
  const { port1, port2 } = new MessageChannel();
  const backlog = new Backlog();
  const outbox = new Outbox<FromThread>(port1, systemTimers.soon, backlog);
  const claim = claimOf("a");
  const grant = new ScriptedGrant(claim, 1n, 1_000);
  const take = (): FromThread[] => {
    const taken: FromThread[] = [];
    for (;;) {
      const next = receiveMessageOnPort(port2) as { message: FromThread[] } | undefined;
      if (!next) break;
      taken.push(...next.message);
      backlog.onReceived(next.message.length);
    }
    return taken;
  };
  const owner = { onLook: () => {}, onEnd: () => {} };
  return {
    outbox,
    take,
    grant: new HostedGrant(1, grant, outbox, owner),
    close: () => port1.close(),
  };
}

describe("the outbox to a caller that is blocked", () => {
  it("drops reports of renewals beyond a bound, but never a loss", () => {
    const { outbox, take, grant, close } = kept();
    const renew = (): void => {
      grant.onRenewal({ outcome: "renewed", atMs: 0, beforeMs: 0, afterMs: 0 });
      outbox.flush();
    };
    for (let renewals = 0; renewals < RENEWALS; renewals += 1) renew();
    grant.onLost("revoked", "stuck");
    const waiting = take();
    expect(waiting.length).toBeLessThanOrEqual(10_001);
    expect(waiting.at(-1)).toEqual({ type: "gone", grant: 1, reason: "revoked", detail: "stuck" });
    renew();
    expect(take()).toMatchObject([{ type: "renewal" }]);
    close();
  });
});
