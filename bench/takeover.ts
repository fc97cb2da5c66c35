import { once } from "node:events";
import type { Contestant, Question, Sample } from "./contest.js";
import { endWithParent, forked } from "./forked.js";
import type { Locker } from "./turns.js";

/** The waiter stands in line by then, and the holder has not renewed yet. */
const SETTLE_MS = 100;

/** A contestant: how to open it here, and the settings of its holder. */
interface Heir {
  readonly name: string;
  readonly role: Contestant["role"];
  readonly order: object;
  open(): Locker | Promise<Locker>;
}

/** The question of every store: a holder dies without a word, how long does it keep the lock. */
export function crashQuestion(
  about: Required<Pick<Question, "store" | "rounds" | "close">> & {
    readonly ttlMs: number;
    /** How long after the ttl the waiter may have it at the latest. */
    readonly slackMs: number;
    readonly holder: URL;
    heirs(isQuick: boolean): Promise<readonly Heir[]>;
  },
): Question {
  const { store, rounds, close, ttlMs, slackMs, holder, heirs } = about;
  return {
    store,
    name: "crash",
    title: `a holder is killed (ttl ${ttlMs} ms), until the waiter has the lock`,
    about: "A holder dies without a word: how long the lock stays with the dead.",
    unit: "ms",
    better: "lower",
    rounds,
    startsFresh: true,
    takesLong: true,
    async contestants(isQuick) {
      return (await heirs(isQuick)).map(({ name, role, order, open }) => ({
        name,
        role,
        round: async () => {
          const told = { candidate: name, lock: `${name}:crash`, ttlMs, ...order };
          return await takeover(holder, told, await open());
        },
      }));
    },
    goals(of) {
      const value = of("holdfast").median;
      const mostMs = ttlMs + slackMs;
      return [{ text: `at most ${mostMs} ms`, value, isMet: value <= mostMs }];
    },
    close,
  };
}

/** A holder in a process of its own is killed: the time until the waiter has the lock. */
async function takeover(
  holder: URL,
  order: { readonly lock: string },
  locker: Locker,
): Promise<Sample> {
  const child = forked(holder, order);
  try {
    await once(child, "message");
    const waiting = locker.acquire(order.lock);
    waiting.catch(() => {});
    await new Promise((resume) => setTimeout(resume, SETTLE_MS));
    child.kill("SIGKILL");
    const killedMs = performance.now();
    const release = await waiting;
    const value = performance.now() - killedMs;
    await release();
    return { value };
  } finally {
    child.kill("SIGKILL");
    await locker.close();
  }
}

/** The program of the holder: it takes the lock, says so, and keeps it until it is killed. */
export async function holdForever(locker: Locker, lock: string): Promise<void> {
  endWithParent();
  await locker.acquire(lock);
  process.send?.("held");
  setInterval(() => {}, 1_000);
}
