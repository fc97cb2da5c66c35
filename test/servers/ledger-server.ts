import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fault, FaultyStore, LateRequest } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { LedgerStore } from "../../src/families/ledger/ledger-store.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { compile } from "./compiled.js";
import { onFreePorts } from "./free-port.js";
import { LedgerArbiter } from "./ledger-arbiter.js";
import { type LedgerAddress, openStore } from "./ledger-child.js";
import { LedgerLink } from "./ledger-link.js";
import type { LedgerFault, LedgerReplies, LedgerRequest } from "./ledger-protocol.js";
import type { Launch } from "./owned-process.js";
import { ServerProcess } from "./server-process.js";

const PROGRAMS = [
  new URL("./ledger-process.ts", import.meta.url),
  new URL("./ledger-child.ts", import.meta.url),
];

/**
 * The ledger as a server: the whole arbiter family over real sockets, between real processes, with
 * faults at exact messages.
 */
export class LedgerServer extends ServerProcess {
  readonly port: number;
  readonly #proxies: FaultProxy[] = [];
  #program: URL | null = null;
  #childModule: URL | null = null;
  #control: Promise<LedgerLink> | null = null;

  constructor(port: number) {
    super("ledger");
    this.port = port;
  }

  /** Exports `openStore`, for child processes. */
  get childModule(): URL {
    if (!this.#childModule) throw new Error("The server was not started.");
    return this.#childModule;
  }

  override async start(): Promise<void> {
    if (!this.#program) {
      const [program, child] = await compile(PROGRAMS, join(this.dir, "program"));
      this.#program = program ?? null;
      this.#childModule = child ?? null;
    }
    await super.start();
  }

  address(namespace: string): LedgerAddress {
    return { port: this.port, namespace };
  }

  open(namespace: string): Store {
    return openStore(this.address(namespace));
  }

  /** `cut` makes the server silent, or with "refuse" lets it refuse connections. */
  async openFaulty(namespace: string, how: "silent" | "refuse" = "silent"): Promise<FaultyStore> {
    const proxy = await startProxy({ targetPort: this.port });
    this.#proxies.push(proxy);
    const arbiter = new LedgerArbiter(proxy.port, namespace);
    const { label } = arbiter;
    return {
      store: new LedgerStore(arbiter),
      loseReply: (command) => this.#fault({ kind: "loseReply", label, command }),
      dropPush: () => this.#fault({ kind: "dropPush", label }),
      keepBack: async (command): Promise<LateRequest> => ({
        ...(await this.#fault({ kind: "keepBack", label, command })),
        deliver: () => this.ask({ type: "deliver", label }),
      }),
      cut: () => (how === "silent" ? proxy.blackhole("both") : proxy.cut()),
      heal: () => proxy.heal(),
    };
  }

  async ask<R extends LedgerRequest>(request: R): Promise<LedgerReplies[R["type"]]> {
    return (await this.#controlLink()).ask(request);
  }

  override async close(): Promise<void> {
    const control = await this.#control?.catch(() => null);
    control?.close();
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await super.close();
  }

  protected override launch(): Launch {
    if (!this.#program) throw new Error("The program was not compiled.");
    const args = [fileURLToPath(this.#program), String(this.port)];
    return { command: process.execPath, args };
  }

  protected override async isReady(): Promise<boolean> {
    const { pid } = await this.ask({ type: "hello", label: "", client: null });
    return pid === this.pid;
  }

  async #fault(fault: LedgerFault): Promise<Fault> {
    const control = await this.#controlLink();
    const struck = control.ask({ type: "fault", fault });
    struck.catch(() => undefined);
    // Requests of one connection are served in order: the fault is armed when this one is answered.
    await control.ask({ type: "hello", label: "", client: null });
    return { struck };
  }

  /** One connection for all requests, opened again after a restart. */
  #controlLink(): Promise<LedgerLink> {
    this.#control ??= this.#openControl();
    return this.#control;
  }

  async #openControl(): Promise<LedgerLink> {
    const forget = () => {
      this.#control = null;
    };
    try {
      const link = await LedgerLink.connect(this.port);
      void link.closed.then(forget);
      return link;
    } catch (error) {
      forget();
      throw error;
    }
  }
}

export async function startLedgerServer(): Promise<LedgerServer> {
  return await onFreePorts(1, async ([port = 0]) => {
    const server = new LedgerServer(port);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  });
}
