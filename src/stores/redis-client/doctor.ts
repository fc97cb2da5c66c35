/** What `holdfast doctor` asks of one server, and its checks: redis and redlock share them. */

import { type Check, checksOver, danger, note, ok, warning } from "../../contract/examination.js";
import { whole } from "../../events/foreign-data.js";
import type { Runtime } from "../../time/runtime.js";
import { type ClockReading, judgeDrift, judgeSkew, type Probes, readClock } from "../doctor.js";
import type { Master } from "./client.js";
import { saidBy } from "./errors.js";

/** Names and values, as INFO and CONFIG GET tell them. */
export type Fields = ReadonlyMap<string, string>;

/** The state of one server. */
export interface ServerFacts {
  readonly info: Fields;
  readonly config: Fields;
  readonly persistence: Persistence;
  readonly clock: ClockReading;
}

/** How a server keeps its data. */
export interface Persistence {
  /** The policy of the append-only file; null where there is none, or where it is not told. */
  readonly fsync: string | null;
  readonly hasAppendOnlyFile: boolean;
  /** The server makes snapshots; null where that is not told. */
  readonly hasSnapshots: boolean | null;
}

const SETTINGS = [
  "appendfsync",
  "save",
  "stop-writes-on-bgsave-error",
  "min-replicas-to-write",
  "timeout",
  "client-output-buffer-limit",
];

/** INFO is in the least rights of a store; CONFIG is not. */
export function serverProbes(master: Master, runtime: Runtime): Probes<ServerFacts> {
  let info: Promise<Fields> | undefined;
  let config: Promise<Fields> | undefined;
  const readInfo = (): Promise<Fields> => {
    info ??= master.send(["info"]).then((text) => infoFields(String(text)));
    return info;
  };
  const readConfig = (): Promise<Fields> => {
    config ??= configFields(master);
    return config;
  };
  return {
    info: readInfo,
    config: readConfig,
    persistence: async () => {
      const settings = await readConfig().catch((): Fields => new Map());
      return persistenceOf(await readInfo(), settings);
    },
    clock: () => readClock(runtime, () => timeUs(master)),
  };
}

/** The fields of a text with one `name:value` on each line. */
export function infoFields(text: string): Fields {
  const lines = text.split(/\r?\n/).filter((line) => /^\w[^:]*:/.test(line));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), afterColon(line)]));
}

function afterColon(line: string): string {
  return line.slice(line.indexOf(":") + 1);
}

async function configFields(master: Master): Promise<Fields> {
  const fields = new Map<string, string>();
  for (const setting of SETTINGS) {
    const answer = await master.send(["config", "get", setting]).catch((error: unknown) => {
      throw new Error(`The settings cannot be read: CONFIG GET is refused (${saidBy(error)}).`);
    });
    const value = Array.isArray(answer) ? answer[1] : Object.values(answer ?? {})[0];
    if (value !== undefined) fields.set(setting, String(value));
  }
  return fields;
}

function persistenceOf(info: Fields, config: Fields): Persistence {
  const save = config.get("save");
  return {
    fsync: config.get("appendfsync") ?? null,
    hasAppendOnlyFile: info.get("aof_enabled") === "1",
    hasSnapshots: save === undefined ? null : save !== "",
  };
}

async function timeUs(master: Master): Promise<number> {
  const [seconds, microseconds] = (await master.send(["time"])) as readonly unknown[];
  return whole(Number(seconds)) * 1_000_000 + whole(Number(microseconds));
}

/** A number of INFO; 0 where it is missing. */
export function numberIn(fields: Fields, name: string): number {
  const number = Number(fields.get(name) ?? 0);
  return Number.isFinite(number) ? number : 0;
}

/** A replica as INFO of its master shows it. */
export interface ReplicaState {
  readonly address: string;
  readonly isOnline: boolean;
  /** Since it was heard of last. */
  readonly lagSeconds: number;
}

export function replicasIn(info: Fields): ReplicaState[] {
  return [...info].flatMap(([name, text]) => {
    if (!/^slave\d+$/.test(name)) return [];
    const parts = new Map(text.split(",").map((part) => part.split("=", 2) as [string, string]));
    return [
      {
        address: `${parts.get("ip")}:${parts.get("port")}`,
        isOnline: parts.get("state") === "online",
        lagSeconds: numberIn(parts, "lag"),
      },
    ];
  });
}

const MIN_VERSION = [6, 2] as const;
/** From this part of a limit on, the limit is near. */
const NEAR = 0.9;
const MIN_IDLE_SECONDS = 60;
const MIN_BUFFER_BYTES = 1024 * 1024;

const check = checksOver<ServerFacts>();

export const serverChecks: readonly Check<ServerFacts>[] = [
  check("redis/version", ["info"], ({ info }) => {
    const valkey = info.get("valkey_version");
    const version = info.get("redis_version") ?? "";
    const [major = 0, minor = 0] = version.split(".").map(Number);
    const name = valkey ? `Valkey ${valkey}` : `Redis ${version || "of unknown version"}`;
    const isOld = major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < 2);
    if (!isOld) return ok(`The server is ${name}.`);
    const why = "The scripts of the store need Redis 6.2: an older server is refused.";
    return danger(`The server is ${name}.`, why, "Update the server to Redis 6.2 or newer.");
  }),

  check("redis/role", ["info"], ({ info }) => {
    if (info.get("role") !== "slave") return ok("The server is a master.");
    return danger(
      `The server is a replica of ${info.get("master_host")}:${info.get("master_port")}.`,
      "A replica refuses writes, so no lock can be taken.",
      "Connect to the master, by redis+sentinel: or a Cluster client where it may move.",
    );
  }),

  check("redis/eviction", ["info"], ({ info }) => {
    const policy = info.get("maxmemory_policy") ?? "unknown";
    if (policy === "noeviction") return ok("Keys are never evicted (noeviction).");
    const isLimited = numberIn(info, "maxmemory") > 0;
    const why = "A lock whose key is evicted is forgotten: another process gets it meanwhile.";
    const remedy = "Set maxmemory-policy noeviction, or use a server for the locks alone.";
    const seen = `maxmemory-policy is ${policy}`;
    if (isLimited) return danger(`${seen}, and maxmemory is set.`, why, remedy);
    return note(`${seen}; without maxmemory nothing is evicted yet.`, why, remedy);
  }),

  check("redis/memory", ["info"], ({ info }) => {
    const limit = numberIn(info, "maxmemory");
    const used = numberIn(info, "used_memory");
    const total = numberIn(info, "total_system_memory");
    const most = limit || total;
    if (most === 0) return ok(`${megabytes(used)} MB are in use; no limit is told.`);
    const name = limit > 0 ? "maxmemory" : "the memory of its machine";
    const part = Math.round((used / most) * 100);
    const seen = `The server uses ${part} % of ${name} (${megabytes(most)} MB).`;
    const remedy = "Raise maxmemory, free memory, or use a server for the locks alone.";
    if (limit > 0 && used >= limit) {
      return danger(seen, "Redis refuses every new lock while its memory is full.", remedy);
    }
    if (used < most * NEAR) return ok(seen);
    return warning(seen, "When the memory is full, Redis refuses every new lock.", remedy);
  }),

  check("redis/saving", ["info", "config"], ({ info, config }) => {
    const failed = ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"]
      .filter((name) => (info.get(name) ?? "ok") !== "ok")
      .map((name) => `${name}:${info.get(name)}`);
    if (failed.length === 0) return ok("The last attempts to save the data succeeded.");
    const seen = `Redis could not save its data (${failed.join(", ")}).`;
    const remedy = "Look at the log of the server: is its disk full, or not writable?";
    const isStopped =
      config.get("stop-writes-on-bgsave-error") !== "no" && config.get("save") !== "";
    const isWriteStopped = info.get("aof_last_write_status") === "err";
    if (isWriteStopped || (isStopped && info.get("rdb_last_bgsave_status") === "err")) {
      return danger(seen, "Redis refuses writes until it can save: no lock can be taken.", remedy);
    }
    return warning(seen, "A restart forgets all locks since the last success.", remedy);
  }),

  check("redis/connections", ["info"], ({ info }) => {
    const [used, most] = [numberIn(info, "connected_clients"), numberIn(info, "maxclients")];
    const seen = `${used} of ${most || "an unknown number of"} connections are in use.`;
    if (most === 0 || used < most * NEAR) return ok(seen);
    const why = "A process that finds no free connection cannot lock, nor renew after a reconnect.";
    return warning(seen, why, "Raise maxclients, or find the clients that leave connections open.");
  }),

  check("redis/idle-timeout", ["config"], ({ config }) => {
    const seconds = numberIn(config, "timeout");
    const seen = `Idle connections are ${seconds ? `closed after ${seconds} s` : "kept"}.`;
    if (seconds === 0 || seconds >= MIN_IDLE_SECONDS) return ok(seen);
    const why = "Connections of locks are often idle: each reconnect makes answers doubtful.";
    return warning(seen, why, "Set timeout 0, or at least 60.");
  }),

  check("redis/output-buffer", ["config"], ({ config }) => {
    const limits = config.get("client-output-buffer-limit") ?? "";
    const small = ["normal", "pubsub"].filter((name) => {
      const [, hard, soft] = new RegExp(`\\b${name} (\\d+) (\\d+)`).exec(limits) ?? [];
      return [hard, soft].some((bytes) => Number(bytes) > 0 && Number(bytes) < MIN_BUFFER_BYTES);
    });
    if (small.length === 0) return ok("The limits of output buffers leave room for messages.");
    return warning(
      `client-output-buffer-limit of ${small.join(" and ")} connections is below 1 MB.`,
      "Redis closes a connection whose answers or messages exceed it.",
      "Set at least the defaults: normal 0 0 0, pubsub 32mb 8mb 60.",
    );
  }),

  check("redis/clock-drift", ["clock"], ({ clock }) => judgeDrift(clock)),
  check("redis/clock-skew", ["clock"], ({ clock }) => judgeSkew(clock)),
];

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
