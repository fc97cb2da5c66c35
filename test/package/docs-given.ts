/** Declarations for the code in the documentation, which uses them without an import. */

/** The declarations that fragments use. */
export const GIVEN = `
import type { Holdfast, Lease as HeldLease } from "holdfast";
interface Sql {
  (text: TemplateStringsArray, ...values: unknown[]): Promise<{ count: number }>;
  begin(work: (transaction: Sql) => Promise<void>): Promise<void>;
}
interface PoolClient {
  query(text: string, values?: readonly unknown[]): Promise<{ rowCount: number | null }>;
  release(): void;
}
declare global {
  type Lease = HeldLease;
  const locks: Holdfast;
  const lease: Lease;
  const stop: AbortController;
  const rows: readonly string[];
  const redis: import("ioredis").Redis;
  const etcd: import("etcd3").Etcd3;
  const harness: import("holdfast/conformance").Harness;
  const sql: Sql;
  const pool: { connect(): Promise<PoolClient> };
  const cache: {
    get(key: string): Promise<string | null>;
    set(key: string, value: string): Promise<void>;
  };
  function oldLock(name: string, work: () => Promise<void>): Promise<void>;
  function importRow(row: string): Promise<void>;
  function saveProgress(row: string): Promise<void>;
  function save(data: unknown): Promise<void>;
  function store(token: bigint): Promise<void>;
  function work(signal: AbortSignal): Promise<void>;
  function render(): Promise<string>;
  function rebuild(token: bigint): Promise<void>;
  function migrate(): Promise<void>;
  function cleanUp(): Promise<void>;
  function writeReport(): Promise<void>;
  function sendMail(): Promise<void>;
  function sendNewsletter(): Promise<void>;
  function sendReport(token: bigint): Promise<string>;
  function indexBatch(token: bigint): Promise<void>;
  function tiltCamera(angle: string): Promise<void>;
  function transfer(from: bigint, to: bigint): Promise<void>;
}
`;

/** Packages of the documentation that come without types, as much as it uses. */
export const GIVEN_PACKAGES = `
declare module "express" {
  type Handler = (
    request: { readonly params: Readonly<Record<string, string>> },
    response: import("node:http").ServerResponse & {
      sendStatus(status: number): void;
      status(status: number): { send(text: string): void };
    },
  ) => Promise<void>;
  export default function express(): {
    put(path: string, handler: Handler): void;
    listen(port: number): import("node:http").Server;
  };
}
`;

/** The same at run time, for examples of the API that need no server: `run` calls one of them. */
export const GIVEN_AT_RUN_TIME = `
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const nothing = async () => {};
Object.assign(globalThis, {
  save: nothing,
  rebuild: nothing,
  cleanUp: nothing,
  writeReport: nothing,
  sendNewsletter: nothing,
  transfer: nothing,
  render: async () => "",
  sendReport: async () => "sent",
  indexBatch: () => sleep(1),
  fetch: async () => Response.json({}),
});

/** A loop that waits for its signal is told to stop, and after that its locks are closed. */
export async function run(example) {
  globalThis.stop = new AbortController();
  globalThis.locks = new Holdfast(memoryStore());
  globalThis.lease = await locks.mutex("given").acquire({ transferable: true });
  let isOver = false;
  const ended = example().catch((error) => {
    if (!isOver) throw error;
  });
  const limit = async () => {
    await sleep(200);
    isOver = true;
    stop.abort();
    await sleep(200);
  };
  await Promise.race([ended, limit()]);
  isOver = true;
  await locks.close();
  await ended;
}
`;
