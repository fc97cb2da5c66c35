import type { Port } from "../../time/port.js";
import { Subscription } from "../redis/subscription.js";
import type { RedlockNode } from "./redlock-node.js";

/** Called with the node that woke us; null: it may know nothing of us any more. */
type Waker = (at: number | null) => void;

/** What the nodes tell this client without being asked: one channel, the same on each of them. */
export class WakeUps {
  readonly channel: string;
  readonly #port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #onRevoked: (at: number, owner: string, token: string, reason: string) => void;
  readonly #onUp: (at: number) => void;
  readonly #wakers = new Map<string, Waker>();
  #subscriptions: readonly Subscription[] = [];
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
          (message) => this.#onMessage(at, message),
          () => {
            this.ups += 1;
            this.#rouse();
            this.#onUp(at);
          },
        ),
    );
  }

  add(id: string, waker: Waker): void {
    this.#wakers.set(id, waker);
  }

  remove(id: string): void {
    this.#wakers.delete(id);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }

  #rouse(): void {
    for (const waker of [...this.#wakers.values()]) waker(null);
  }

  #onMessage(at: number, message: string): void {
    const [, kind, text = ""] = /^(\w) (.*)$/s.exec(message) ?? [];
    if (kind === "w") this.#wakers.get(text)?.(at);
    if (kind === "e" && text !== "") this.#wakers.get(text)?.(null);
    if (kind === "e" && text === "") this.#rouse();
    if (kind !== "x") return;
    const [, owner = "", token = "", reason = ""] = /^(\S+) (\d+) (.*)$/s.exec(text) ?? [];
    this.#onRevoked(at, owner, token, reason);
  }
}
