import { guarded, Unreadable } from "../../events/foreign-data.js";
import type { OwnConnection } from "../redis-client/client.js";
import { Subscription } from "../redis-client/subscription.js";
import type { Grants } from "./grants.js";
import type { Quorum } from "./quorum.js";

/** A waiter of this client, as the messages of the nodes reach it. */
export interface Sleeper {
  /** A node says that this waiter is next. */
  onWake(at: number): void;
  /** The waiter before this one was woken: look, in case it does not come. */
  onStandby(): void;
  /** A node may have dropped this waiter from its queue. */
  onForgotten(): void;
}

/** The messages of the nodes to this client: one channel, of the same name on every node. */
export class WakeUps {
  readonly channel: string;
  readonly #quorum: Quorum;
  readonly #grants: Grants;
  readonly #sleepers = new Map<string, Sleeper>();
  #subscriptions: readonly Subscription[] = [];
  #added = 0;
  /** How often a subscription came up. Messages from before that are lost. */
  ups = 0;

  constructor(quorum: Quorum, grants: Grants) {
    this.channel = `holdfast@${quorum.runtime.random.id()}`;
    this.#quorum = quorum;
    this.#grants = grants;
  }

  /** Subscribes in the background: until that is done, waiters look by themselves. */
  listen(): void {
    if (this.#subscriptions.length > 0) return;
    this.#subscriptions = this.#quorum.nodes.map(({ driver }, at) => {
      const subscription = new Subscription(driver, this.#quorum.runtime, {
        channel: this.channel,
        onMessage: guarded("redlock", "a message to this client", (message: string) => {
          this.#onMessage(at, message);
        }),
        onUp: () => {
          this.ups += 1;
          this.#wakeAll();
          this.#grants.lookAfterAll(at);
        },
        // A lone server has no marker that names a process.
        ...(!this.#quorum.isLone && {
          prepare: (connection: OwnConnection) => this.#proveSameProcess(connection),
        }),
      });
      subscription.start();
      return subscription;
    });
  }

  /** Returns the name of the waiter in this channel. */
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
   * Subscribes to a channel that names the server process at the other end, by the run id that this
   * process told on this connection. The connection never reconnects, so the subscription ends with
   * that process. Data may come back from a snapshot, and a request may be sent again to another
   * process, but such a process has no subscriber of this channel. While the channel with the run
   * id of the marker has a subscriber, a node is sure, without INFO, that it is the process that
   * the marker names: whichever client subscribed, this very process told it that run id. Without a
   * subscriber the node asks for INFO at every vote.
   */
  async #proveSameProcess(connection: OwnConnection): Promise<void> {
    const text = await connection.send(["INFO", "server"]);
    const [, run] = /^run_id:(\w+)/m.exec(String(text)) ?? [];
    if (run) await connection.subscribe(`holdfast@/${run}`, () => {});
  }

  #wakeAll(): void {
    for (const sleeper of [...this.#sleepers.values()]) sleeper.onForgotten();
  }

  #onMessage(at: number, message: string): void {
    const [, kind, text = ""] = /^([wsex]) (.*)$/s.exec(message) ?? [];
    if (kind === undefined) throw new Unreadable("a message of a node");
    if (kind === "x") {
      const [, owner, token = "", reason = ""] = /^(\S+) (\d{1,20}) (.*)$/s.exec(text) ?? [];
      if (owner === undefined) throw new Unreadable("a revocation");
      return this.#grants.onRevoked(at, owner, token, reason);
    }
    if (kind === "e" && text === "") return this.#wakeAll();
    const sleeper = this.#sleepers.get(text);
    if (kind === "w") sleeper?.onWake(at);
    if (kind === "s") sleeper?.onStandby();
    if (kind === "e") sleeper?.onForgotten();
  }
}
