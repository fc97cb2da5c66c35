import type { Verbs } from "./command.js";

/** The code of a verb is loaded when the verb is called. */
export const VERBS: Verbs = {
  run: {
    summary: "run a command under a lock",
    load: async () => (await import("./commands/run.js")).run,
  },
  once: {
    summary: "run a command unless it was done already",
    load: async () => (await import("./commands/once.js")).once,
  },
  elect: {
    summary: "run a command on one of many hosts; another takes over when it fails",
    load: async () => (await import("./commands/elect.js")).elect,
  },
  acquire: {
    summary: "take a lock for later steps and print its handle",
    load: async () => (await import("./commands/acquire.js")).acquire,
  },
  renew: {
    summary: "prolong what acquire took",
    load: async () => (await import("./commands/renew.js")).renew,
  },
  release: {
    summary: "give back what acquire took",
    load: async () => (await import("./commands/release.js")).release,
  },
  list: {
    summary: "show the locks in use",
    load: async () => (await import("./commands/list.js")).list,
  },
  show: {
    summary: "show who holds one lock and who waits",
    load: async () => (await import("./commands/show.js")).show,
  },
  watch: {
    summary: "show the locks in use, live",
    load: async () => (await import("./commands/watch.js")).watch,
  },
  wait: {
    summary: "wait until a lock is free, without taking it",
    load: async () => (await import("./commands/wait.js")).wait,
  },
  revoke: {
    summary: "take a lock away from its holder",
    load: async () => (await import("./commands/revoke.js")).revoke,
  },
  dashboard: {
    summary: "serve a page that shows the locks in use, live",
    load: async () => (await import("./commands/dashboard.js")).dashboard,
  },
  doctor: {
    summary: "examine the store, and what survives what",
    load: async () => (await import("./commands/doctor.js")).doctor,
  },
  migrate: {
    summary: "print or apply the SQL that a store in Postgres needs",
    load: async () => (await import("./commands/migrate.js")).migrate,
  },
  demo: {
    summary: "see locks survive killed and stopped processes",
    load: async () => (await import("./commands/demo.js")).demo,
  },
  completion: {
    summary: "print the completion for bash or zsh",
    load: async () => (await import("./commands/completion.js")).completion,
  },
};
