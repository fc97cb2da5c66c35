// Opens a store on the ledger server in a child process of the conformance kit.
import type { Store } from "../../src/contract/store.js";
import { ArbiterStore } from "../../src/families/ledger/arbiter-store.js";
import { LedgerArbiter } from "./ledger-arbiter.js";

export interface LedgerAddress {
  readonly port: number;
  readonly namespace: string;
}

export function openStore({ port, namespace }: LedgerAddress): Store {
  return new ArbiterStore(new LedgerArbiter(port, namespace));
}
