import type { PollingEvent } from "../../events/events.js";
import { events } from "../../events/publish.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import type { OwnConnection } from "./client.js";
import { channelOf } from "./codec.js";
import { STORE } from "./errors.js";
import type { Session } from "./session.js";

/** How long a connection may take to receive its own notification. */
const OWN_LIMIT_MS = 2_000;
/**
 * How long a notification from another connection may take after its commit. Commands wait
 * meanwhile.
 */
const LIMIT_MS = 300;
/** How often waiters ask if no notifications arrive. */
const POLL_MS = 200;

export interface NotificationRules {
  readonly namespace: string;
  /** The channel of this client: its name is secret, because every role may send to it. */
  readonly channel: string;
  onMessage(payload: string): void;
  /** Messages from before may have been missed. */
  onReset(): void;
  /** Another connection to the same server. */
  openAnother(): Promise<OwnConnection>;
}

/**
 * Receives the notifications to this client if LISTEN works. A pooler in transaction mode accepts
 * LISTEN but delivers nothing, so every connection is tested. If the test fails, waiters poll.
 */
export class Notifications {
  readonly #runtime: Runtime;
  readonly #rules: NotificationRules;
  #isPolling = false;
  #isTold = false;

  constructor(runtime: Runtime, rules: NotificationRules) {
    this.#runtime = runtime;
    this.#rules = rules;
  }

  /** The longest time between two heartbeats of a waiter. */
  get pollMs(): number {
    return this.#isPolling ? POLL_MS : Number.POSITIVE_INFINITY;
  }

  /** Never rejects. A connection that ends under way is followed by another one. */
  async start(session: Session): Promise<void> {
    try {
      if (!session.isPinned && (await this.#isLasting(session))) await session.pin();
      const isHeard = session.isPinned && (await this.#listen(session));
      this.#setPolling(!isHeard);
    } catch {
      if (session.isClosed) return;
      this.#setPolling(true);
    }
    this.#rules.onReset();
  }

  /** Starts to listen; returns false if the connection does not receive its own notification. */
  async #listen(session: Session): Promise<boolean> {
    const { channel, onMessage } = this.#rules;
    const heard = heardOn(session, channel, onMessage);
    await session.send({ text: `listen "${channel}"` });
    await session.send({ text: `notify "${channel}"` });
    return await this.#within(OWN_LIMIT_MS, heard);
  }

  /**
   * Whether the connection keeps its own server process between transactions, so that notifications
   * reach it while it is idle. A pooler would deliver them to whichever program uses the server
   * process at that moment. So the test notification comes from another connection, and this one
   * runs no statement until it arrives.
   */
  async #isLasting(session: Session): Promise<boolean> {
    const other = await this.#rules.openAnother();
    try {
      const channel = channelOf(this.#runtime.random.id());
      await session.send({ text: `listen "${channel}"` });
      const isHeard = await session.whileSilent(async () => {
        const heard = heardOn(session, channel, () => {});
        const sending = other.send({ text: `notify "${channel}"` });
        await within(this.#runtime.timers, OWN_LIMIT_MS, sending);
        return await this.#within(LIMIT_MS, heard);
      });
      await session.send({ text: `unlisten "${channel}"` });
      return isHeard;
    } finally {
      other.close();
    }
  }

  #within(limitMs: number, heard: Promise<true>): Promise<boolean> {
    return Promise.race([heard, pause(this.#runtime.timers, limitMs).then(() => false)]);
  }

  #setPolling(isPolling: boolean): void {
    this.#isPolling = isPolling;
    if (!isPolling || this.#isTold) return;
    this.#isTold = true;
    const { namespace } = this.#rules;
    events.polling.publish({ store: STORE, namespace, everyMs: POLL_MS } satisfies PollingEvent);
  }
}

/** Resolves with the first message without a text; all other messages are passed on. */
function heardOn(
  session: Session,
  channel: string,
  onMessage: (payload: string) => void,
): Promise<true> {
  return new Promise((resolve) => {
    session.onNotification = (to, payload) => {
      if (to !== channel) return;
      if (payload === "") resolve(true);
      else onMessage(payload);
    };
  });
}
