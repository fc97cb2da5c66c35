import type { Behaviour } from "../behaviour.js";
import { needProcesses } from "../needs.js";
import { assertComplete, withCounter } from "../shared-counter.js";

export const exclusionOfProcesses: Behaviour = {
  title: "100 contenders in several processes lose no count",
  needs: needProcesses,
  run: (context) =>
    withCounter(async (file) => {
      const children = await context.children(4);
      const lock = { kind: "mutex", name: "count" } as const;
      const counting = children.map((child) => child.call("count", lock, file, 25));
      assertComplete((await Promise.all(counting)).flat(), 100);
    }),
};
