import type { Mutant } from "./mutant.js";

/** In the ZooKeeper store: mistakes about proofs, servers that are behind, and transactions. */
export const zookeeper: readonly Mutant[] = [
  {
    title: "zookeeper: a write through a follower counts as a proof",
    rule: "proof-resumes-the-session",
    change: { only: 1, of: "&&" },
  },
  {
    title: "zookeeper: a resume alone counts as a proof",
    rule: "proof-is-committed-behind-its-resume",
    change: {
      text: "work(connection)",
      becomes: "new Set()",
      why: "The proof tells which entries are missing: none.",
    },
  },
  {
    title: "zookeeper: the last number is given once",
    rule: "order-by-numbers-ends",
    change: { only: 1, of: "&&" },
  },
  {
    title: "zookeeper: no number is negative",
    rule: "order-by-numbers-ends",
    change: { only: 2, of: "&&" },
  },
  {
    title: "zookeeper: a znode is gone where its server is behind",
    rule: "absence-counts-on-servers-up-to-date",
    change: "never",
  },
  {
    title: "zookeeper: a lost entry is looked for on a server that is behind",
    rule: "lost-entry-is-looked-for-after-a-sync",
    change: { text: "connection.send(sync(queue))", becomes: "null", why: "One call of two goes." },
  },
  {
    title: "zookeeper: a lost transaction is taken for a refused one",
    rule: "lost-transaction-is-unknown",
    change: "never",
  },
  {
    title: "zookeeper: an entry holds although its queue has others",
    rule: "only-entry-holds-without-a-look",
    change: "always",
  },
];
