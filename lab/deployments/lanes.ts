import type { ProxiedRequest } from "../../test/faults/framing.js";
import { FaultProxy, startProxy } from "../../test/faults/proxy.js";
import { closeAll, startAll } from "../../test/servers/server-process.js";
import { LaneLinks } from "./lane-links.js";
import type { Wire } from "./wire.js";

type OnRequest = (lane: string, request: ProxiedRequest) => void;

/** The links of all processes to the servers. */
export class Lanes {
  readonly #wire: Wire;
  readonly #onRequest: OnRequest;
  readonly #links = new Map<string, LaneLinks>();

  constructor(wire: Wire, onRequest: OnRequest = () => undefined) {
    this.#wire = wire;
    this.#onRequest = onRequest;
  }

  async connect(lanes: readonly string[], ports: readonly number[]): Promise<void> {
    const { framing } = this.#wire;
    for (const lane of lanes) {
      const starts = ports.map((targetPort) => startProxy({ targetPort, framing }));
      this.#set(lane, await startAll(starts));
    }
  }

  links(lane: string): LaneLinks {
    const links = this.#links.get(lane);
    if (!links) throw new Error(`no lane ${lane}`);
    return links;
  }

  /** Clients connect to the same ports again, as to a name that now means another server. */
  async moveTo(targetPort: number): Promise<void> {
    const { framing } = this.#wire;
    for (const [lane, { proxies, isStalled }] of this.#links) {
      await closeAll(proxies);
      const moved = proxies.map(({ port }) => new FaultProxy(port, { targetPort, framing }));
      const links = this.#set(lane, moved);
      if (isStalled) links.stallRequests();
      await Promise.all(moved.map((proxy) => proxy.listen()));
    }
  }

  async close(): Promise<void> {
    for (const { proxies } of this.#links.values()) await closeAll(proxies);
  }

  #set(lane: string, proxies: readonly FaultProxy[]): LaneLinks {
    for (const proxy of proxies) {
      proxy.onRequest((request) => {
        this.#onRequest(lane, request);
        return undefined;
      });
    }
    const links = new LaneLinks(proxies, this.#wire);
    this.#links.set(lane, links);
    return links;
  }
}
