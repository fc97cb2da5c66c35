import type { Holdfast } from "../../holdfast.js";
import type { LockView } from "../../store.js";
import { Counter } from "./counter.js";
import { LOCK_NAME, type Request } from "./protocol.js";
import type { Screen } from "./screen.js";
import { type Actor, Troupe } from "./troupe.js";

const LOOK_MS = 50;
const PATIENCE_MS = 20_000;

/** Something the demonstration waited for did not happen. */
class Stalled extends Error {}

/** One run of the workers, with or without the lock, and what came of it. */
export class Act {
  readonly counter: Counter = new Counter();
  /** Tokens whose late writes the counter refused. */
  readonly refused: { readonly token: bigint; readonly by: bigint }[] = [];
  /** Grants whose token was not above all before. */
  disorder = 0;
  grants = 0;
  readonly #screen: Screen;
  readonly #locks: Holdfast | null;
  readonly #troupe: Troupe;
  #holder: Actor | null = null;
  /** Done to the next holder, between its read and its write. */
  #strike: ((actor: Actor) => void) | null = null;

  #struckMs = 0;

  constructor(store: string, screen: Screen, locks: Holdfast | null) {
    this.#screen = screen;
    this.#locks = locks;
    const mode = locks ? "locked" : "unlocked";
    const env = { ...process.env, HOLDFAST_STORE: store, HOLDFAST_DEMO: mode };
    this.#troupe = new Troupe(env, (actor, request) => this.#answer(actor, request));
  }

  start(workers: number): void {
    for (let worker = 0; worker < workers; worker += 1) this.#troupe.add();
  }

  async end(): Promise<void> {
    await this.#troupe.dismiss();
  }

  /** SIGKILL to whoever gets the lock next. Resolves with how long the others waited. */
  async killHolder(interrupted: AbortSignal): Promise<number> {
    const victim = await this.#strikeNext("SIGKILL", "killed", interrupted);
    const startMs = this.#struckMs;
    const seen = this.grants;
    this.#screen.say(`${victim.label} holds the lock and is killed with SIGKILL.`);
    this.#troupe.add();
    await this.until(() => this.grants > seen, interrupted);
    const tookMs = performance.now() - startMs;
    this.#screen.say(`${this.#holder?.label} took over after ${(tookMs / 1_000).toFixed(2)} s.`);
    return tookMs;
  }

  /** SIGSTOP to whoever gets the lock next, for `stoppedMs`, then SIGCONT. Same result. */
  async stopHolder(stoppedMs: number, interrupted: AbortSignal): Promise<number> {
    const victim = await this.#strikeNext("SIGSTOP", "STOPPED", interrupted);
    const startMs = this.#struckMs;
    const seen = this.grants;
    this.#screen.say(`${victim.label} holds the lock and is stopped with SIGSTOP.`);
    await this.until(() => this.grants > seen, interrupted);
    const tookMs = performance.now() - startMs;
    this.#screen.say(`${this.#holder?.label} took over after ${(tookMs / 1_000).toFixed(2)} s.`);
    await this.pass(stoppedMs - tookMs, interrupted);
    this.#screen.say(`${victim.label} is continued, in the middle of its work.`);
    victim.state = "waiting";
    victim.process.kill("SIGCONT");
    return tookMs;
  }

  async pass(durationMs: number, interrupted: AbortSignal): Promise<void> {
    const untilMs = performance.now() + durationMs;
    await this.until(() => performance.now() >= untilMs, interrupted);
  }

  /** Keeps the picture moving until something has come true. */
  async until(isTrue: () => boolean, interrupted: AbortSignal): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS;
    while (!isTrue()) {
      interrupted.throwIfAborted();
      if (performance.now() > endMs) throw new Stalled("The demonstration does not move on.");
      this.#screen.draw({
        actors: this.#troupe.actors,
        view: await this.#look(),
        counter: this.counter.value,
        writes: this.counter.writes,
      });
      await new Promise((resume) => setTimeout(resume, LOOK_MS));
    }
  }

  async #look(): Promise<LockView | null> {
    return (await this.#locks?.inspect(LOCK_NAME).catch(() => null)) ?? null;
  }

  async #strikeNext(
    signal: NodeJS.Signals,
    state: Actor["state"],
    interrupted: AbortSignal,
  ): Promise<Actor> {
    let victim: Actor | undefined;
    this.#strike = (actor) => {
      actor.process.kill(signal);
      actor.state = state;
      this.#struckMs = performance.now();
      victim = actor;
    };
    await this.until(() => victim !== undefined, interrupted);
    return victim as Actor;
  }

  #answer(actor: Actor, request: Request): number {
    if (request.type === "held") this.#grant(actor, BigInt(request.token));
    if (request.type === "write") this.#write(actor, request);
    if (request.type === "read" && actor === this.#holder) {
      this.#strike?.(actor);
      this.#strike = null;
    }
    return this.counter.value;
  }

  #grant(actor: Actor, token: bigint): void {
    this.grants += 1;
    if (!this.counter.announce(token)) this.disorder += 1;
    if (this.#holder?.state === "HOLDS") this.#holder.state = "waiting";
    this.#holder = actor;
    actor.state = "HOLDS";
  }

  #write(actor: Actor, { value, token, lease }: Extract<Request, { type: "write" }>): void {
    const number = token === null ? null : BigInt(token);
    if (this.counter.write(value, number) || number === null) return;
    this.refused.push({ token: number, by: this.counter.highest });
    this.#screen.say(
      `${actor.label} writes with token …${token?.slice(-9)}: refused, the counter has seen ` +
        `…${String(this.counter.highest).slice(-9)} (its lease says: ${lease}).`,
    );
  }
}
