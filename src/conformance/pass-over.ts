import assert from "node:assert/strict";
import type { ChildClient } from "./child-client.js";
import type { Context } from "./context.js";
import { isSettled, PROMPT_MS, within } from "./patience.js";

const lock = { kind: "mutex", name: "m" } as const;

/** Three wait, the second falls silent, and the third is served all the same. */
export async function passOver(
  context: Context,
  silence: (second: ChildClient) => Promise<void>,
  afterwards?: (second: ChildClient, acquiring: Promise<bigint>) => Promise<void>,
): Promise<void> {
  const locks = await context.open();
  const children = await context.children(3);
  await Promise.all(children.map((child) => child.call("warmUp")));
  const { renewedMs } = context.ttl;
  const held = await locks.mutex("m").acquire();
  const acquiring: Promise<bigint>[] = [];
  for (const child of children) {
    acquiring.push(child.call("acquire", lock, { ttlMs: renewedMs }));
    await context.untilWaiting(locks, "m", acquiring.length);
  }
  const [first, second, third] = children;
  assert.ok(first && second && third);
  const [firstTurn, secondTurn, thirdTurn] = acquiring;
  assert.ok(firstTurn && secondTurn && thirdTurn);

  await silence(second);
  await held.release();
  const firstToken = await within(PROMPT_MS, "the first is served", firstTurn);
  assert.equal(await isSettled(thirdTurn, 50), false);
  await first.call("release", firstToken);
  // Long enough for a grant that nobody takes up to lapse, but no more than that.
  const bound = 2 * renewedMs + PROMPT_MS;
  const thirdToken = await within(bound, "the third is served", thirdTurn);
  assert.ok(thirdToken > firstToken);
  await third.call("release", thirdToken);
  await afterwards?.(second, secondTurn);
}
