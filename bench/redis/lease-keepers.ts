import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { forked } from "../forked.js";
import type { Order, Report } from "./lease-keeper.js";

const PROGRAM = new URL("./lease-keeper.js", import.meta.url);

/** Processes that hold very many leases on one server. */
export class LeaseKeepers {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
  }

  /** Resolves when they have all of them. */
  static async start(
    terms: Pick<Order, "port" | "leases" | "clients" | "ttlMs">,
    processes: number,
  ): Promise<LeaseKeepers> {
    const children = Array.from({ length: processes }, (_, index) => {
      const [leases, clients] = [terms.leases, terms.clients].map((n) => Math.ceil(n / processes));
      return forked(PROGRAM, { ...terms, prefix: `keeper-${index}`, leases, clients });
    });
    const keepers = new LeaseKeepers(children);
    try {
      await keepers.#heard();
      return keepers;
    } catch (error) {
      keepers.end();
      throw error;
    }
  }

  /** Their figures begin now. */
  watch(): void {
    for (const child of this.#children) child.send("watch");
  }

  async reports(): Promise<readonly Report[]> {
    const reports = this.#heard();
    for (const child of this.#children) child.send("report");
    return (await reports) as Report[];
  }

  end(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  /** The next message of each. */
  async #heard(): Promise<unknown[]> {
    const heard = this.#children.map(async (child) => {
      const ended = once(child, "exit").then(() => {
        throw new Error("a process that keeps leases ended early");
      });
      const [message] = await Promise.race([once(child, "message"), ended]);
      return message;
    });
    return await Promise.all(heard);
  }
}
