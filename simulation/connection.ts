import type { Chance } from "./chance.js";
import type { SimulatedProcess } from "./process.js";
import { delayOf, type Weather } from "./weather.js";
import type { World } from "./world.js";

export interface Network {
  readonly world: World;
  readonly chance: Chance;
  /** The weather at this moment. */
  weather(): Weather;
}

/** A server, as far as the network can tell. */
export interface Server {
  readonly isDown: boolean;
  readonly busyUntilMs: number;
}

export interface Request {
  /** Called in the server, maybe twice; returns what the reply does when it arrives. */
  execute(): () => void;
  /** The server is down, and the process is told so. */
  onRefused(): void;
}

/**
 * The connection of a simulated process to a server. Requests and replies are late, lost, repeated
 * or overtaken; the connection breaks, and a request may arrive long after its connection is gone.
 */
export class Connection {
  readonly #process: SimulatedProcess;
  readonly #server: Server;
  readonly #network: Network;
  readonly #isMultiplexed: boolean;
  readonly #onBreak: () => void;
  /** Counts the breaks: the reply to a request of an older connection has lost its way back. */
  #number = 0;
  #lastRequestMs = 0;
  #lastReplyMs = 0;
  #cutUntilMs = 0;
  #breaksNext = false;

  constructor(
    process: SimulatedProcess,
    network: Network,
    {
      server,
      isMultiplexed = false,
      onBreak,
    }: {
      readonly server: Server;
      /** Each call is a stream of its own: replies keep no order, and no request comes twice. */
      readonly isMultiplexed?: boolean;
      readonly onBreak: () => void;
    },
  ) {
    this.#process = process;
    this.#network = network;
    this.#server = server;
    this.#isMultiplexed = isMultiplexed;
    this.#onBreak = onBreak;
  }

  get number(): number {
    return this.#number;
  }

  get isCut(): boolean {
    return this.#network.world.nowMs < this.#cutUntilMs;
  }

  get cutUntilMs(): number {
    return this.#cutUntilMs;
  }

  /** How long the next message takes. */
  delayMs(): number {
    return delayOf(this.#network.weather(), this.#network.chance);
  }

  /** No message gets through for a while, and neither side is told. */
  cut(forMs: number): void {
    this.#cutUntilMs = this.#network.world.nowMs + forMs;
  }

  /** The connection will break while its next request is under way. */
  breakNext(): void {
    this.#breaksNext = true;
  }

  /** Ends without a successor: replies do not arrive any more. */
  abandon(): void {
    this.#number += 1;
  }

  /** The connection breaks: each of the calls is sent again on the next one, or each fails. */
  replace<Call>(
    calls: ReadonlySet<Call>,
    resend: (call: Call) => void,
    fail: (call: Call) => void,
  ): void {
    const { world, chance } = this.#network;
    this.#number += 1;
    this.#lastRequestMs = 0;
    this.#lastReplyMs = 0;
    const isResent = chance.isLucky(0.5);
    for (const call of calls) {
      world.schedule(world.nowMs + chance.between(0, 20), this.#process, () => {
        if (!calls.has(call)) return;
        if (isResent) resend(call);
        else fail(call);
      });
    }
  }

  send(request: Request): void {
    const { world, chance, weather } = this.#network;
    const { loss, copies, ordered, lateMs } = weather();
    const fromMs = this.#process.nowMs;
    const number = this.#number;
    let arrivalMs = fromMs + this.delayMs();
    if (ordered) {
      arrivalMs = Math.max(arrivalMs, this.#lastRequestMs);
      this.#lastRequestMs = arrivalMs;
    }
    if (this.#breaksNext) {
      this.#breaksNext = false;
      world.schedule(chance.between(fromMs, arrivalMs), null, this.#onBreak);
    }
    const arrive = (): void => this.#arrive(request, number, false);
    if (!chance.isLucky(loss) && !this.isCut) world.schedule(arrivalMs, null, arrive);
    if (!this.#isMultiplexed && chance.isLucky(copies)) {
      world.schedule(arrivalMs + chance.spread(...lateMs), null, arrive);
    }
  }

  #arrive(request: Request, number: number, isLate: boolean): void {
    const { world, chance, weather } = this.#network;
    const { isDown, busyUntilMs } = this.#server;
    const isStray = number !== this.#number;
    const arriveAt = (atMs: number): void => {
      world.schedule(atMs, null, () => this.#arrive(request, number, true));
    };
    if (isDown || this.isCut) {
      // The connection is refused, or the request is lost without a word.
      if (isDown && !isStray && chance.isLucky(0.7)) {
        this.#reply(world.nowMs + this.delayMs(), number, () => request.onRefused());
      }
      return;
    }
    if (busyUntilMs > world.nowMs) return arriveAt(busyUntilMs);
    if (isStray && !isLate) {
      const fate = chance.weigh({ lost: 4, intime: 2, late: 4 });
      if (fate === "lost") return;
      if (fate === "late") return arriveAt(world.nowMs + chance.spread(...weather().lateMs));
    }
    const onReply = request.execute();
    if (isStray || chance.isLucky(weather().loss)) return;
    let replyMs = world.nowMs + this.delayMs();
    if (weather().ordered && !this.#isMultiplexed) {
      replyMs = Math.max(replyMs, this.#lastReplyMs);
      this.#lastReplyMs = replyMs;
    }
    this.#reply(replyMs, number, onReply);
  }

  #reply(atMs: number, number: number, onReply: () => void): void {
    this.#network.world.schedule(atMs, this.#process, () => {
      if (number === this.#number) onReply();
    });
  }
}
