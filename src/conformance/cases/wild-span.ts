import assert from "node:assert/strict";
import { StoreError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { claimOf } from "../claim.js";
import { needSpans } from "../needs.js";
import { PROMPT_MS } from "../patience.js";

/** Above what any client should ask for; more than a number can count. */
const WILD = [1e12, Number.MAX_SAFE_INTEGER, 2 ** 60];

export const wildSpan: Behaviour = {
  title: "a claim for very many tokens is refused or cut short, and those of others rise",
  needs: needSpans,
  async run(context) {
    const [wild, tame] = [await context.openStore(), await context.openStore()];
    context.bind(wild);
    context.bind(tame);
    let highest = 0n;
    for (const span of [...WILD, 1, 1, 1]) {
      const store = span === 1 ? tame : wild;
      const claim = { ...claimOf(store, "m", context.ttl.longMs), span };
      const grant = await store.acquire(claim, null).catch((error: unknown) => {
        assert.ok(span > 1 && error instanceof StoreError, `${error}`);
        assert.equal(error.outcome, "not_applied");
        return null;
      });
      if (!grant) continue;
      assert.ok(grant.type === "granted");
      assert.ok(grant.token > highest, `token ${grant.token} comes after ${highest}`);
      highest = grant.token + BigInt(grant.span) - 1n;
      assert.ok(highest <= Number.MAX_SAFE_INTEGER, `${highest} is exact as a number`);
      assert.equal(await store.release(grant, PROMPT_MS), true);
    }
  },
};
