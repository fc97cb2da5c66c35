import { InvalidOptionError } from "../../errors/index.js";
import { StoreUrl, type TlsFiles } from "../store-url.js";
import type { Driver } from "./client.js";
import { loadPgDriver } from "./pg.js";
import { loadPostgresJsDriver } from "./postgres-js.js";

const DEFAULT_PORT = 5432;
const MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
/** The names that libpq has for the files of TLS. */
const LIBPQ_FILES = { sslrootcert: "ca", sslcert: "cert", sslkey: "key" } as const;

const PARAMETERS = ["namespace", "hasSynchronousStandby", "sslmode", "application_name"];

type SslMode = (typeof MODES)[number];

/** A URL of `postgres:` or `postgresql:`: how to connect, and the options of the store. */
export interface PostgresUrl<Name extends string> {
  readonly driver: Driver;
  readonly options: { readonly namespace: string; readonly hasSynchronousStandby: boolean } & {
    readonly [K in Name]?: number;
  };
}

export async function readPostgresUrl<Name extends string>(
  given: URL,
  numbers: readonly Name[],
): Promise<PostgresUrl<Name>> {
  const url = withOwnNames(given);
  const mode = sslMode(url);
  const parameters = [...PARAMETERS, ...numbers];
  const read = new StoreUrl(url, { port: DEFAULT_PORT, parameters, isSecure: mode !== "disable" });
  const [database, ...more] = read.path;
  if (more.length > 0) {
    throw new InvalidOptionError("url", url.protocol, "must have one name in its path: /database");
  }
  const target = {
    hosts: read.hosts,
    user: read.username,
    password: read.password,
    database,
    ssl: sslOptions(mode, await read.tls()),
    application_name: read.text("application_name") ?? "holdfast",
  };
  const driver = (await loadPgDriver(target)) ?? (await loadPostgresJsDriver(target));
  if (!driver) {
    const rule = "needs pg 8.7 or later, or postgres 3: npm install pg@8";
    throw new InvalidOptionError("url", "postgres", rule);
  }
  const options = {
    namespace: read.text("namespace") ?? "",
    hasSynchronousStandby: flagOf(read, "hasSynchronousStandby"),
    ...read.numbers(...numbers),
  };
  return { driver, options };
}

function flagOf(url: StoreUrl, name: string): boolean {
  const text = url.text(name) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new InvalidOptionError(name, text, "must be true or false");
}

/** Files by the names that libpq has for them count as `ca`, `cert` and `key`. */
function withOwnNames(given: URL): URL {
  const url = new URL(given);
  for (const [libpq, own] of Object.entries(LIBPQ_FILES)) {
    const path = url.searchParams.get(libpq);
    if (path === null) continue;
    url.searchParams.delete(libpq);
    url.searchParams.append(own, path);
  }
  return url;
}

/**
 * The mode that the URL names; with a file of TLS and no mode, the strictest. An unknown word must
 * not mean plain text: the password would be sent unencrypted.
 */
function sslMode({ searchParams }: URL): SslMode {
  const given = searchParams.get("sslmode");
  if (given === null) {
    const hasFiles = Object.values(LIBPQ_FILES).some((name) => searchParams.has(name));
    return hasFiles ? "verify-full" : "disable";
  }
  const mode = MODES.find((one) => one === given);
  if (mode) return mode;
  throw new InvalidOptionError("sslmode", given, `must be one of ${MODES.join(", ")}`);
}

/** As libpq: `require` checks the certificate only where an authority is given. */
function sslOptions(mode: SslMode, files: TlsFiles | null): object | false {
  if (!files) return false;
  if (mode === "verify-full") return { ...files };
  if (mode === "require" && !files.ca) return { ...files, rejectUnauthorized: false };
  return { ...files, checkServerIdentity: () => undefined };
}
