import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Contestant } from "./contest.js";
import { cpuUsOfChildren } from "./costs.js";

/** A contestant that is a program of Node, timed from its start to its end. */
export function started(
  name: string,
  role: Contestant["role"],
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Contestant {
  return {
    name,
    role,
    round: async () => {
      const cpuBefore = cpuUsOfChildren();
      const startMs = performance.now();
      const child = spawn(process.execPath, args, {
        stdio: "ignore",
        env: { ...process.env, ...env },
      });
      const [code] = await once(child, "exit");
      if (code !== 0) throw new Error(`it ended with ${code}`);
      const value = performance.now() - startMs;
      return { value, more: { "client CPU ms": (cpuUsOfChildren() - cpuBefore) / 1000 } };
    },
  };
}
