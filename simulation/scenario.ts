/** Runs one seed from its first event to its end, when store and programs must be empty. */
import { Chance } from "./chance.js";
import type { Network } from "./connection.js";
import { injectFaults } from "./faults.js";
import { History } from "./history.js";
import type { Link } from "./link.js";
import { LocalLink } from "./local-link.js";
import { NetworkLink } from "./network-link.js";
import { isHealthy, isSteady, type Plan } from "./plan.js";
import { SimulatedProcess } from "./process.js";
import { Program } from "./program.js";
import { NodeFleet } from "./quorum/node-fleet.js";
import { QuorumLink } from "./quorum/quorum-link.js";
import { EtcdLink } from "./sequencer/etcd-link.js";
import { EtcdServer } from "./sequencer/etcd-server.js";
import { StoreServer, type StoreSide } from "./store-server.js";
import { FAIR, longestDelayMs } from "./weather.js";
import { World } from "./world.js";
import { ZookeeperLink } from "./zookeeper/zookeeper-link.js";
import { ZookeeperServers } from "./zookeeper/zookeeper-servers.js";

/** More steps than any program takes in a second of its time: beyond, the code runs in circles. */
const MAX_STEPS_PER_SECOND = 5_000;
const MAX_STEPS = 200_000;
/** Copies from broken connections come this late. */
const LATEST_COPY_MS = 8_000;
/** A follower of ZooKeeper may be this far behind its leader. */
const MAX_LAG_MS = 500;
/** Every call and every cleanup ends within this. */
const QUIET_MS = 45_000;

export class Scenario {
  readonly history: History = new History();
  readonly world: World = new World();
  readonly #plan: Plan;
  readonly #server: StoreSide;
  readonly #newLink: (id: string, process: SimulatedProcess) => Link;
  readonly #chance: Chance;
  readonly #programs: Program[] = [];
  /** Set where all programs are in one process with their store. */
  readonly #local: { readonly process: SimulatedProcess; link(): Link } | null = null;
  #weather = FAIR;
  #restarts = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#chance = new Chance(plan.seed, "world");
    const { leasesStep, slice } = plan;
    const rate = this.#rate();
    if (plan.profile === "local") {
      // One process has one clock: the store shows the time of the programs, even within a turn.
      const process = this.#newProcess("p");
      const clock = { leasesStep, rate: process.rate, nowMs: () => process.nowMs };
      const server = new StoreServer(this.history, clock, slice);
      const link = (): Link => new LocalLink(process, server);
      this.#server = server;
      this.#newLink = link;
      this.#local = { process, link };
      return;
    }
    const nowMs = (): number => this.world.nowMs;
    if (plan.family === "sequencer") {
      const etcd = new EtcdServer(this.world, rate, this.history, new Chance(plan.seed, "etcd"));
      this.#server = etcd;
      this.#newLink = (id, process) => new EtcdLink(process, etcd, this.#networkOf(id));
      return;
    }
    if (plan.family === "zookeeper") {
      const servers = new ZookeeperServers(this.#networkOf("zookeeper"), this.history, {
        rate,
        longestTtlMs: Math.max(...plan.ttlsMs),
        mostLagMs: isSteady(plan) ? 0 : MAX_LAG_MS,
      });
      this.#server = servers;
      this.#newLink = (id, process) => new ZookeeperLink(process, servers, this.#networkOf(id));
      return;
    }
    if (plan.family === "quorum") {
      const fleet = this.#newFleet(nowMs);
      this.#server = fleet;
      this.#newLink = (id, process) => this.#newQuorumLink(id, process, fleet);
      return;
    }
    const server = new StoreServer(this.history, { rate, leasesStep, nowMs }, slice);
    this.#server = server;
    this.#newLink = (id, process) =>
      new NetworkLink(process, server, this.#networkOf(id), plan.believesPushes);
  }

  /** When faults end, when their effects end, and when all work must be done. */
  get #times(): { chaosMs: number; calmMs: number; quietMs: number; endMs: number } {
    const { chaosMs, ttlsMs, weather, freezeParts } = this.#plan;
    const longestTtlMs = Math.max(...ttlsMs);
    const effectMs = Math.max(
      longestDelayMs(weather),
      LATEST_COPY_MS,
      freezeParts[1] * longestTtlMs,
      2 * longestTtlMs,
    );
    const quietMs = chaosMs + effectMs;
    const calmMs = isSteady(this.#plan) ? 0 : quietMs;
    return { chaosMs, calmMs, quietMs, endMs: quietMs + 100 * longestTtlMs + 10 * QUIET_MS };
  }

  async run(): Promise<void> {
    const { chaosMs, calmMs, quietMs, endMs } = this.#times;
    this.#weather = this.#plan.weather;
    for (let index = 0; index < this.#plan.programs; index += 1) this.#start(`p${index}`);
    injectFaults(
      this.#plan,
      {
        world: this.world,
        server: this.#server,
        programs: () => this.#programs,
        replace: (program) => this.#replace(program),
      },
      chaosMs,
    );
    this.world.schedule(chaosMs, null, () => {
      this.#weather = FAIR;
    });
    this.world.schedule(calmMs, null, () => {
      this.history.record(this.world.nowMs, { type: "calm" });
    });
    await this.#runUntil(endMs, () => this.world.nowMs > quietMs && this.#living().every(isIdle));
    this.#left("tasks", this.#living().filter((program) => !program.isIdle).length);
    await this.#finish();
  }

  /** Closes all programs; then the store must be empty, and no timer may be set. */
  async #finish(): Promise<void> {
    const living = this.#living();
    for (const program of living) program.close();
    await this.#sleep(QUIET_MS);
    this.#left("open programs", living.filter((program) => !program.isClosed).length);
    if (isHealthy(this.#plan)) {
      const { holders, waiters } = this.#server.census();
      this.#left("holders", holders);
      this.#left("waiters", waiters);
    }
    await this.#sleep(6 * Math.max(...this.#plan.ttlsMs) + QUIET_MS + this.#server.setBackMs);
    this.#server.census();
    this.#left("names", this.#server.size);
    for (const { process } of living) this.#left(`timers of ${process.id}`, process.timers.all);
    if (this.world.steps >= this.#mostSteps) this.#left("steps", this.world.steps);
  }

  #start(id: string): Program {
    const { seed } = this.#plan;
    const process = this.#local?.process ?? this.#newProcess(id);
    const link = this.#local?.link() ?? this.#newLink(id, process);
    const chance = new Chance(seed, `program ${id}`);
    const program = new Program(id, process, link, this.#planOf(id), this.history, chance);
    this.#programs.push(program);
    program.start(this.#times.chaosMs);
    return program;
  }

  #planOf(id: string): Plan {
    const { seed, ttlsMs, hasOwnTtls } = this.#plan;
    if (!hasOwnTtls) return this.#plan;
    return { ...this.#plan, ttlsMs: [new Chance(seed, `ttl ${id}`).pick(ttlsMs)] };
  }

  #newProcess(id: string): SimulatedProcess {
    const chance = new Chance(this.#plan.seed, `process ${id}`);
    const wallMs = new Chance(this.#plan.seed, `wall ${id}`).pick(this.#plan.wallsMs);
    return new SimulatedProcess(id, this.#rate(), this.world, this.history, chance, wallMs);
  }

  #newFleet(nowMs: () => number): NodeFleet {
    const { seed, nodes, ttlsMs, renewalParts } = this.#plan;
    const longestMs = Math.max(...ttlsMs) * Math.max(1, ...renewalParts);
    const clock = { nowMs, rate: () => this.#rate() };
    const chance = new Chance(seed, "nodes");
    const fleet = new NodeFleet(nodes, longestMs, clock, this.history, chance);
    fleet.initiate(Math.min(...ttlsMs));
    return fleet;
  }

  #newQuorumLink(id: string, process: SimulatedProcess, fleet: NodeFleet): Link {
    const { seed, ttlsMs, announceParts, cutOff, chaosMs } = this.#plan;
    const maxTtlMs = Math.min(...ttlsMs);
    const announceMs = announceParts * maxTtlMs;
    const link = new QuorumLink(process, fleet, this.#networkOf(id), { maxTtlMs, announceMs });
    if (new Chance(seed, `cut off ${id}`).isLucky(cutOff)) link.cutOff(chaosMs - this.world.nowMs);
    return link;
  }

  #networkOf(id: string): Network {
    return {
      world: this.world,
      chance: new Chance(this.#plan.seed, `network ${id}`),
      weather: () => this.#weather,
    };
  }

  #replace(crashed: Program): void {
    this.#programs.splice(this.#programs.indexOf(crashed), 1);
    const [name] = crashed.id.split("+");
    this.#restarts += 1;
    this.#start(`${name}+${this.#restarts}`);
  }

  get #mostSteps(): number {
    const { chaosMs, programs } = this.#plan;
    return MAX_STEPS + MAX_STEPS_PER_SECOND * programs * (chaosMs / 1_000);
  }

  #living(): Program[] {
    return this.#programs.filter((program) => program.process.isAlive);
  }

  /** How fast a clock runs, within the drift of the plan. */
  #rate(): number {
    // The largest drift, in either direction, is the likeliest.
    return 1 + this.#plan.drift * this.#chance.pick([-1, 1, this.#chance.between(-1, 1)]);
  }

  #left(what: string, count: number): void {
    if (count > 0) this.history.record(this.world.nowMs, { type: "left", what, count });
  }

  #sleep(forMs: number): Promise<void> {
    const untilMs = this.world.nowMs + forMs;
    this.world.schedule(untilMs, null, () => {});
    return this.#runUntil(untilMs, () => false);
  }

  #runUntil(untilMs: number, isOver: () => boolean): Promise<void> {
    return this.world.run(untilMs, this.#mostSteps, isOver);
  }
}

function isIdle(program: Program): boolean {
  return program.isIdle;
}
