import { acquire } from "./cases/acquire.js";
import { all } from "./cases/all.js";
import { close } from "./cases/close.js";
import { election } from "./cases/election.js";
import { faultsLateCopies, faultsLostMessages } from "./cases/faults-messages.js";
import { faultsSilence } from "./cases/faults-silence.js";
import { inspection } from "./cases/inspection.js";
import { leaseTime } from "./cases/lease-time.js";
import { loss } from "./cases/loss.js";
import { names } from "./cases/names.js";
import { once } from "./cases/once.js";
import { processes } from "./cases/processes.js";
import { readWrite } from "./cases/read-write.js";
import { reentry } from "./cases/reentry.js";
import { release } from "./cases/release.js";
import { renewal } from "./cases/renewal.js";
import { revoke } from "./cases/revoke.js";
import { semaphore } from "./cases/semaphore.js";
import { transfer } from "./cases/transfer.js";
import { wait } from "./cases/wait.js";
import { waitingOrder } from "./cases/waiting-order.js";
import type { Behaviour } from "./needs.js";

/** All behaviours, from the simple topics to the intricate ones. */
export const behaviours: readonly Behaviour[] = [
  ...acquire,
  ...wait,
  ...release,
  ...leaseTime,
  ...renewal,
  ...loss,
  ...reentry,
  ...waitingOrder,
  ...readWrite,
  ...semaphore,
  ...all,
  ...names,
  ...inspection,
  ...revoke,
  ...election,
  ...once,
  ...transfer,
  ...close,
  ...processes,
  ...faultsLostMessages,
  ...faultsLateCopies,
  ...faultsSilence,
];
