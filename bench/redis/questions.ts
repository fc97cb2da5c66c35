import type { Question } from "../contest.js";
import { calls } from "./calls.js";
import { cluster } from "./cluster.js";
import { commands } from "./commands.js";
import { crash } from "./crash.js";
import { crowd } from "./crowd.js";
import { heldFootprint, waitingFootprint } from "./footprint.js";
import { clients, names, processes } from "./growth.js";
import { handoff } from "./handoff.js";
import { heldLeases } from "./held-leases.js";
import { manyNames } from "./many-names.js";
import { millionLeases } from "./million-leases.js";
import { oneName } from "./one-name.js";
import { replicated, replicatedNames } from "./replicas.js";
import { startUp } from "./start-up.js";
import { subscribers } from "./subscribers.js";
import { thread } from "./thread.js";
import { uncontended } from "./uncontended.js";
import { waiters } from "./waiters.js";

export const questions: readonly Question[] = [
  uncontended,
  subscribers,
  thread,
  manyNames,
  handoff,
  oneName,
  commands,
  calls,
  waiters,
  heldLeases,
  heldFootprint,
  waitingFootprint,
  startUp,
  crash,
  names,
  clients,
  processes,
  replicated,
  replicatedNames,
  cluster,
  crowd,
  millionLeases,
];
