import { whole } from "../../events/foreign-data.js";
import type { Runtime } from "../../time/runtime.js";
import { type ClockReading, type Probes, readClock } from "../doctor.js";
import type { Master } from "./driver.js";
import { saidBy } from "./failure.js";

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
