import type { Command } from "../command.js";

export const demo: Command = {
  usage: [""],
  about:
    "Several processes share one counter under one lock, on a temporary file store. One holder " +
    "is killed, another stopped past its time and continued. It ends in about 15 s with a " +
    "verdict.",
  options: {},
  examples: [],

  async run(args) {
    args.none();
    const { runDemo } = await import("../demo/run-demo.js");
    return runDemo();
  },
};
