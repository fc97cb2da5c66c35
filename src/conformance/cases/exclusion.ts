import type { Behaviour } from "../behaviour.js";
import { assertComplete, countUp, withCounter } from "../shared-counter.js";

export const exclusion: Behaviour = {
  title: "100 contenders of one process lose no count",
  run: (context) =>
    withCounter(async (file) => {
      const clients = await Promise.all(Array.from({ length: 4 }, () => context.open()));
      const counting = clients.map((locks) =>
        Array.from({ length: 25 }, () => countUp(locks.mutex("count"), file)),
      );
      assertComplete(await Promise.all(counting.flat()), 100);
    }),
};
