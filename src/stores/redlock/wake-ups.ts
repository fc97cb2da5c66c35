import { guarded, Unreadable } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import type { OwnConnection } from "../redis-client/driver.js";
import { Subscription } from "../redis-client/subscription.js";
import type { RedlockNode } from "./redlock-node.js";

export interface Sleeper {
  /** It is our turn, says a node. */
  onWake(at: number): void;
  /** Our turn is next: should it not come, look. */
  onStandby(): void;
  /** A node may know nothing of us any more. */
  onForgotten(): void;
}

/** What the nodes tell this client without being asked: one channel, the same on each of them. */
export class WakeUps {
  readonly channel: string;
  readonly #port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #onRevoked: (at: number, owner: string, token: string, reason: string) => void;
  readonly #onUp: (at: number) => void;
  readonly #sleepers = new Map<string, Sleeper>();
  #subscriptions: readonly Subscription[] = [];
  #added = 0;
  /** How often a node came into hearing: what it told before is not known. */
  ups = 0;

  constructor(
    port: Port,
    nodes: readonly RedlockNode[],
    onRevoked: (at: number, owner: string, token: string, reason: string) => void,
    onUp: (at: number) => void,
  ) {
    this.channel = `holdfast@${port.random.id()}`;
    this.#port = port;
    this.#nodes = nodes;
    this.#onRevoked = onRevoked;
    this.#onUp = onUp;
  }

  /** Not waited for: until it is up, those who wait look by themselves. */
  listen(): void {
    if (this.#subscriptions.length > 0) return;
    this.#subscriptions = this.#nodes.map(
      ({ driver }, at) =>
        new Subscription(
          driver,
          this.#port,
          this.channel,
          guarded("redlock", "a message to this client", (message: string) => {
            this.#onMessage(at, message);
          }),
          () => {
            this.ups += 1;
            this.#rouse();
            this.#onUp(at);
          },
          (connection) => this.#bearWitness(connection).catch(() => {}),
        ),
    );
  }

  /** Returns what it goes by in this channel. */
  add(sleeper: Sleeper): string {
    this.#added += 1;
    const id = this.#added.toString(36);
    this.#sleepers.set(id, sleeper);
    return id;
  }

  remove(id: string): void {
    this.#sleepers.delete(id);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }

  /**
   * Listens to a channel that names the very process at the other end, as that process said on this
   * connection. Data may come back from a snapshot, a request may be sent again to whoever took the
   * server's place, but this connection never connects again, so its listener is with one process
   * and ends with it. Where this channel has one, a node knows without asking the server that it is
   * the process that its marker names; where it has none, the server is asked at every vote.
   */
  async #bearWitness(connection: OwnConnection): Promise<void> {
    const text = await connection.send(["INFO", "server"]);
    const [, run] = /^run_id:(\w+)/m.exec(String(text)) ?? [];
    if (run) await connection.subscribe(`${this.channel}/${run}`, () => {});
  }

  #rouse(): void {
    for (const sleeper of [...this.#sleepers.values()]) sleeper.onForgotten();
  }

  #onMessage(at: number, message: string): void {
    const [, kind, text = ""] = /^([wsex]) (.*)$/s.exec(message) ?? [];
    if (kind === undefined) throw new Unreadable("a message of a node");
    if (kind === "x") {
      const [, owner, token = "", reason = ""] = /^(\S+) (\d{1,20}) (.*)$/s.exec(text) ?? [];
      if (owner === undefined) throw new Unreadable("a revocation");
      return this.#onRevoked(at, owner, token, reason);
    }
    if (kind === "e" && text === "") return this.#rouse();
    const sleeper = this.#sleepers.get(text);
    if (kind === "w") sleeper?.onWake(at);
    if (kind === "s") sleeper?.onStandby();
    if (kind === "e") sleeper?.onForgotten();
  }
}
