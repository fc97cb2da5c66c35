import type { Deployment } from "./deployment.js";
import type { LaneLinks } from "./lane-links.js";
import { Lanes } from "./lanes.js";
import type { Wire } from "./wire.js";

/** One service, such as etcd, and the links of all processes to it. */
export class ServiceDeployment implements Deployment {
  readonly folder = "";
  readonly #service: Service;
  readonly #lanes: Lanes;

  constructor(service: Service) {
    this.#service = service;
    this.#lanes = new Lanes(service.wire);
  }

  static async start(service: Service, lanes: readonly string[]): Promise<ServiceDeployment> {
    const deployment = new ServiceDeployment(service);
    await deployment.#lanes.connect(lanes, service.ports);
    return deployment;
  }

  get versions(): Readonly<Record<string, string>> {
    return this.#service.versions;
  }

  get succession(): string {
    return this.#service.succession;
  }

  links(lane: string): LaneLinks {
    return this.#lanes.links(lane);
  }

  readTruth(): Promise<string | null> {
    return Promise.reject(new Error("the subject reads its store itself"));
  }

  isEndless(): Promise<boolean> {
    return Promise.resolve(false);
  }

  laneOf(): string | null {
    return null;
  }

  bareMajority(): void {}

  restartEmpty(): Promise<void> {
    return this.#service.restartEmpty();
  }

  async shiftClock(byMs: number): Promise<void> {
    if (!this.#service.shiftClock) throw new Error("the lab cannot shift the clock of this server");
    await this.#service.shiftClock(byMs);
  }

  cutReplicas(): void {
    this.#service.cutFollowers();
  }

  async failOver(): Promise<void> {
    const port = await this.#service.failOver();
    if (port !== null) await this.#lanes.moveTo(port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lanes.close();
    await this.#service[Symbol.asyncDispose]();
  }
}

/** Servers that are one store together, and the faults that they can have. */
export interface Service extends AsyncDisposable {
  readonly versions: Readonly<Record<string, string>>;
  readonly wire: Wire;
  /** The flag of `failOver` in the picture. */
  readonly succession: string;
  /** Of the servers that clients connect to. */
  readonly ports: readonly number[];
  /** All servers lose their data. Resolves when they answer again. */
  restartEmpty(): Promise<void>;
  /** Absent where the lab cannot shift its clock. */
  shiftClock?(byMs: number): Promise<void>;
  /** Writes do not reach the followers any more. Does nothing where a write needs a majority. */
  cutFollowers(): void;
  /**
   * The leader dies. Resolves when another server has taken its place, with the port of that server
   * where clients are sent there.
   */
  failOver(): Promise<number | null>;
}
