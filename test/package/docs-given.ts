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

/** The parts of packages that recipes use and this project does not install. */
export const PACKAGES = `
declare module "@nestjs/common" {
  export function Injectable(): ClassDecorator;
  export function Module(parts: { providers?: unknown[]; exports?: unknown[] }): ClassDecorator;
  export interface OnApplicationShutdown {
    onApplicationShutdown(signal?: string): unknown;
  }
}
declare module "@nestjs/schedule" {
  export function Cron(expression: string): MethodDecorator;
}
declare module "bullmq" {
  export class DelayedError extends Error {}
  export interface Job<Data> {
    readonly data: Data;
    moveToDelayed(timestamp: number, token?: string): Promise<void>;
  }
  export class Worker<Data> {
    constructor(
      queue: string,
      processor: (job: Job<Data>, token?: string) => Promise<unknown>,
      options: { connection: { host: string; port: number }; concurrency?: number },
    );
    close(): Promise<void>;
  }
}
`;
