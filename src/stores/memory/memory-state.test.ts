import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { commandOf, ledgerStep } from "../../../test/fixtures/ledger-step.js";
import { PlainState } from "../../../test/fixtures/plain-state.js";
import { check } from "../../../test/fixtures/property.js";
import { apply } from "../../rules/ledger.js";
import type { Command, Instant, Push, Reply } from "../../rules/ledger-command.js";
import type { LedgerState } from "../../rules/ledger-state.js";
import { Upkeep } from "../../rules/upkeep.js";
import { MemoryState } from "./memory-state.js";

/** Everything that a state lets its ledger say. */
function witness(state: LedgerState, slice: number) {
  return (command: Command, at: Instant, unreachable: string | null) => {
    const pushes: Push[] = [];
    const emit = (push: Push): boolean => {
      pushes.push(push);
      return push.client !== unreachable;
    };
    const upkeep = new Upkeep(slice);
    const reply = apply(state, command, at, emit, upkeep);
    const view: Reply = apply(state, { type: "inspect", key: state.key }, at, emit, upkeep);
    return { reply, view, pushes };
  };
}

describe("MemoryState", { timeout: 30_000 }, () => {
  it.each([0, 1, 64])("answers every command as plain lists would, in slices of %i", (slice) => {
    check(
      fc.property(fc.array(ledgerStep, { minLength: 20, maxLength: 80 }), (steps) => {
        const key = "l:x";
        const fast = witness(new MemoryState(key, { last: 0 }), slice);
        const plain = witness(new PlainState(key), slice);
        const tokens: number[] = [];
        const at = { us: 1_000, wallUs: 5_000_000 };
        for (const step of steps) {
          const { pauseUs, wallJumpUs, unreachable } = step;
          at.us += pauseUs;
          at.wallUs += pauseUs + wallJumpUs;
          const sent = commandOf(step, at.us, tokens);
          const expected = plain(sent, at, unreachable);
          const got = fast(sent, at, unreachable);
          if (!isDeepStrictEqual(got, expected)) expect(got).toEqual(expected);
          if (expected.reply.type === "granted") tokens.push(expected.reply.token);
        }
      }),
      150,
    );
  });
});
