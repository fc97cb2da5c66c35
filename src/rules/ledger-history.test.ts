import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { commandOf, type LedgerStep, ledgerStep } from "../../test/fixtures/ledger-step.js";
import { check } from "../../test/fixtures/property.js";
import { MemoryLedger } from "../stores/memory/memory-ledger.js";
import type { Command, Push, Reply, View } from "./ledger-command.js";

const KEY = "l:x";
const steps = fc.array(ledgerStep, { minLength: 10, maxLength: 80 });

interface Moment {
  readonly command: Command;
  readonly reply: Reply;
  readonly pushes: readonly Push[];
  readonly before: View;
  readonly view: View;
  /** The same command once more, at the same instant, and what it led to. */
  repeat(): { reply: Reply; view: View };
}

/** Plays the steps on one name and shows every moment of it. */
function play(history: readonly LedgerStep[], look: (moment: Moment) => void): void {
  let pushes: Push[] = [];
  let unreachable: string | null = null;
  const ledger = new MemoryLedger((push) => {
    if (push.client === unreachable) return false;
    pushes.push(push);
    return true;
  });
  const tokens: number[] = [];
  const at = { us: 1_000, wallUs: 5_000_000 };
  for (const step of history) {
    at.us += step.pauseUs;
    at.wallUs += step.pauseUs + step.wallJumpUs;
    unreachable = step.unreachable;
    pushes = [];
    const command = commandOf(step, at.us, tokens);
    const inspect = (): View => ledger.execute({ type: "inspect", key: KEY }, at);
    const before = inspect();
    const reply: Reply = ledger.execute(command, at);
    const view = inspect();
    tokens.push(...view.holders.map(({ token }) => token));
    const repeat = () => ({ reply: ledger.execute(command, at) as Reply, view: inspect() });
    look({ command, reply, pushes, before, view, repeat });
  }
}

describe("in every history", { timeout: 30_000 }, () => {
  it("the holders are compatible", () => {
    check(
      fc.property(steps, (history) => {
        play(history, ({ view: { holders } }) => {
          if (holders.some(({ mode }) => mode === "exclusive")) expect(holders).toHaveLength(1);
          const weight = holders.reduce((sum, holder) => sum + holder.weight, 0);
          expect(weight).toBeLessThanOrEqual(Math.min(...holders.map(({ limit }) => limit)));
        });
      }),
    );
  });

  it("tokens strictly rise, spans included", () => {
    check(
      fc.property(steps, (history) => {
        let highest = 0;
        const seen = new Set<number>();
        play(history, ({ reply, pushes, view }) => {
          const grants = pushes.flatMap((push) => (push.type === "granted" ? [push.grant] : []));
          if (reply.type === "granted")
            grants.push({ ...reply, owner: "", grantedUs: 0, expiryUs: 0 });
          for (const { token, span } of [...grants, ...view.holders]) {
            if (seen.has(token)) continue;
            seen.add(token);
            expect(token).toBeGreaterThan(highest);
            highest = token + span - 1;
          }
        });
      }),
    );
  });

  it("a repeated command gets the same answer and changes nothing", () => {
    check(
      fc.property(steps, (history) => {
        play(history, ({ command, reply, view, repeat }) => {
          const { reply: again, view: after } = repeat();
          if (reply.type === "queued") expect(again).toEqual({ ...reply, ahead: null });
          else if (command.type === "release") expect(again).toMatchObject({ held: false });
          else if (command.type === "revoke") expect(again).toMatchObject({ done: false });
          else if (!isDeepStrictEqual(again, reply)) expect(again).toEqual(reply);
          if (!isDeepStrictEqual(after, view)) expect(after).toEqual(view);
        });
      }),
    );
  });

  it("only an acquire makes a holder or a waiter, and no renewal shortens one", () => {
    check(
      fc.property(steps, (history) => {
        play(history, ({ command, before, view }) => {
          const known = new Map(before.holders.map((holder) => [holder.token, holder]));
          const waited = new Set(before.waiters.map(({ meta }) => meta));
          for (const { token, meta, remainingUs } of view.holders) {
            const isNew = !known.has(token);
            if (isNew && command.type === "acquire" && command.meta === meta) continue;
            if (isNew) expect(waited).toContain(meta);
            else expect(remainingUs).toBeGreaterThanOrEqual(known.get(token)?.remainingUs ?? 0);
          }
          if (command.type !== "acquire") {
            expect(view.waiters.length).toBeLessThanOrEqual(before.waiters.length);
          }
        });
      }),
    );
  });

  it("a command that was refused makes no holder and no waiter", () => {
    check(
      fc.property(steps, (history) => {
        play(history, ({ command, reply, before, view }) => {
          if (reply.type !== "stale" && reply.type !== "gone") return;
          const owner = "owner" in command ? command.owner : "";
          const isThere = ({ holders, waiters }: View): boolean =>
            [...holders, ...waiters].some(({ meta }) => meta === owner);
          if (isThere(view)) expect(isThere(before)).toBe(true);
          if (reply.type === "stale" && reply.reason === "ended") expect(isThere(view)).toBe(false);
        });
      }),
    );
  });
});

describe("where everybody answers", { timeout: 30_000 }, () => {
  const calm = steps.map((history) =>
    history.map((step) => ({ ...step, pauseUs: 0, unreachable: null })),
  );

  it("the queue is served in the order of coming, and no newcomer is let in before it", () => {
    check(
      fc.property(calm, (history) => {
        const line: string[] = [];
        play(history, ({ command, reply, pushes, before }) => {
          if (command.type === "release") {
            const place = line.indexOf(command.owner);
            if (place >= 0) line.splice(place, 1);
          }
          for (const push of pushes) {
            const owner = push.type === "granted" ? push.grant.owner : push.owner;
            if (push.type !== "revoked") expect(line.shift()).toBe(owner);
          }
          if (command.type !== "acquire") return;
          if (reply.type === "granted" && line.length > 0) {
            expect(before.holders.map(({ meta }) => meta)).toContain(command.owner);
          }
          if (reply.type === "queued" && reply.ahead !== null) {
            expect(reply.ahead).toBe(line.length);
            line.push(command.owner);
          }
        });
      }),
      200,
    );
  });
});

describe("in the end", { timeout: 30_000 }, () => {
  it("nothing is left of any history", () => {
    check(
      fc.property(steps, (history) => {
        const ledger = new MemoryLedger(() => true);
        const at = { us: 1_000, wallUs: 5_000_000 };
        for (const step of history) {
          at.us += step.pauseUs;
          ledger.execute(commandOf(step, at.us, []), at);
        }
        // Waiters may be handed what others left, each for a claim: a few rounds, then silence.
        for (let round = 0; round < 20; round += 1) {
          at.us += 100_000;
          ledger.execute({ type: "inspect", key: KEY }, at);
        }
        expect(ledger.size).toBe(0);
      }),
    );
  });
});
