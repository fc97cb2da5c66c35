import type { Deployment } from "./deployment.js";
import type { LaneLinks } from "./lane-links.js";
import { Lanes } from "./lanes.js";
import type { Service } from "./service.js";

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
