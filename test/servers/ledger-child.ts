// Opens a store on the ledger server in a child process of the conformance kit.
import type { Store } from "../../src/contract/store.js";
import { LedgerStore } from "../../src/families/ledger/ledger-store.js";
import { LedgerArbiter } from "./ledger-arbiter.js";

export interface LedgerAddress {
  readonly port: number;
  readonly namespace: string;
}

export function openStore({ port, namespace }: LedgerAddress): Store {
  return new LedgerStore(new LedgerArbiter(port, namespace));
}
