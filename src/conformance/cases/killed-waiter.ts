import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needProcesses } from "../needs.js";
import { passOver } from "../pass-over.js";

export const killedWaiter: Behaviour = {
  title: "a waiter that is killed in the middle of the queue holds up nobody for long",
  needs: needAll(needFifo, needProcesses),
  run: (context) =>
    passOver(context, async (second) => {
      await second.kill();
    }),
};
