// Money moves between accounts in both directions at once: all locks or none, and no deadlock.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
const balance = new Map([
  ["anna", 100],
  ["ben", 100],
]);

async function transfer(from, to, amount) {
  const both = locks.all([locks.mutex(`account:${from}`), locks.mutex(`account:${to}`)]);
  await both.run(
    async (leases) => {
      const [before, after] = [balance.get(from) - amount, balance.get(to) + amount];
      await sleep(1);
      leases.assertHeld();
      balance.set(from, before).set(to, after);
    },
    { waitMs: 5_000 },
  );
}

const rounds = Array.from({ length: 20 }, (_, round) =>
  round % 2 === 0 ? transfer("anna", "ben", 5) : transfer("ben", "anna", 4),
);
await Promise.all(rounds);

const [anna, ben] = [balance.get("anna"), balance.get("ben")];
console.log(`anna ${anna}, ben ${ben}, together ${anna + ben}`);
await locks.close();
