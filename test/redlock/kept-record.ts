/** Compares the record behind a ballot, and for how long it is kept, with the rules of a node. */
import { expect } from "vitest";
import type { NameState } from "../../src/stores/redlock/node-rules.js";
import type { RedisServer } from "../servers/redis.js";

/** Ballots of the same 1,000 seconds share an expiry, which may be that much earlier. */
const PERIOD_MS = 1_000_000;
const DAY_MS = 86_400_000;

/** Checks that a `once` of thirty days has a mark and a record that outlives it. */
export async function expectLongMark(server: RedisServer, name: string): Promise<void> {
  const keys = (await server.ask("KEYS", `*o:${name}`)) as string[];
  const left = (key = ""): Promise<number> => server.ask("PTTL", key).then(Number);
  const markMs = await left(keys.find((key) => !key.includes(":b:")));
  const recordMs = await left(keys.find((key) => key.includes(":b:")));
  expect(markMs).toBeGreaterThan(29 * DAY_MS);
  expect(recordMs).toBeGreaterThan(markMs);
}

/** `keys`: those of the lock and of its ballot. */
export async function expectKept(
  server: Pick<RedisServer, "ask">,
  [lock, key]: readonly [string, string],
  { ballot, foreignBallot, foreignLock }: NameState,
  { about, toleranceMs }: { readonly about: string; readonly toleranceMs: number },
): Promise<void> {
  if (!ballot || foreignBallot) return;
  const text = String(await server.ask("GET", key));
  expect(/^\d+ D /.test(text), `${about}: ${text}`).toBe(ballot.isOfMark === true);
  const [seconds] = (await server.ask("TIME")) as string[];
  const leftMs = Number(await server.ask("PTTL", key));
  const expectedMs = ballot.untilUs / 1000 - Number(seconds) * 1000;
  const least = expectedMs - toleranceMs - (ballot.isOfMark ? 0 : PERIOD_MS);
  // A ballot that a test has planted has no expiry.
  if (Number.isFinite(expectedMs)) expect(leftMs, about).toBeGreaterThan(least);
  if (!ballot.isOfMark) return;
  expect(leftMs, about).toBeLessThan(expectedMs + toleranceMs);
  if (foreignLock) return;
  const isMarked = String(await server.ask("GET", lock)).startsWith("done:");
  if (isMarked) expect(leftMs, about).toBeGreaterThan(Number(await server.ask("PTTL", lock)));
}
