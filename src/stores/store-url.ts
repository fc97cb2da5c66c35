/**
 * The URL of a store: credentials, hosts, path, parameters and files of TLS, read the same way for
 * every store. No error shows a value of the URL other than the name of a parameter and the path of
 * a file: the rest may be a password.
 */

import { InvalidOptionError, invalidValue } from "../errors/index.js";
import { unknownWord } from "../options/known-options.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The files of TLS that a URL names; without `ca`, the authorities that Node knows count. */
export interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export interface StoreUrlRules {
  /** The port of a host that names none. */
  readonly port?: number;
  /** All parameters that the store knows, apart from hosts and files of TLS. */
  readonly parameters: readonly string[];
  /** Whether connections are encrypted; null: the store has no connections. */
  readonly isSecure: boolean | null;
}

const HOSTS = ["host", "node"];
const FILES = ["ca", "cert", "key"] as const;
const MAX_PORT = 65_535;
const ADDRESSES = `must have hosts as host:port, with a port up to ${MAX_PORT}`;
const ENCODED = "must have /, ? and # of a password percent-encoded: %2F, %3F, %23";

/** Parses a URL. A URL has room for one host: further ones become `host` parameters. */
export function parseStoreUrl(text: string): URL {
  const [, before = "", first = "", others = "", rest = ""] =
    /^([a-z+]+:\/\/(?:[^/?#]*@)?)([^/?#,]*)((?:,[^/?#,]*)*)(.*)$/s.exec(text) ?? [];
  if (before.includes(",")) {
    const rule =
      "must have the user and the password once, before the first host: they are for all hosts " +
      "(a comma in them is written as %2C)";
    throw hidden(rule);
  }
  // Behind a password with one of these characters, the rest of the URL means something else.
  if (/#|\?[^=]*@/.test(text)) throw hidden(ENCODED);
  const one = before + first + rest || text;
  if (before !== "" && !URL.canParse(one)) {
    throw hidden(rest.includes("@") ? ENCODED : ADDRESSES);
  }
  const parsed = new URL(one);
  if (others === "") return parsed;
  for (const host of others.slice(1).split(",")) parsed.searchParams.append("host", host);
  return parsed;
}

/** A parameter that is not known, or given twice, would lock elsewhere. */
export function checkParameters(url: URL, known: readonly string[]): void {
  const given = [...url.searchParams.keys()];
  for (const [at, name] of given.entries()) {
    if (!known.includes(name)) throw unknownWord("parameter", "url", name, known);
    if (HOSTS.includes(name) || given.indexOf(name) === at) continue;
    throw new InvalidOptionError("url", name, "must be given once");
  }
}

export class StoreUrl {
  readonly protocol: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly hosts: readonly Address[];
  /** The parts of the path, decoded. */
  readonly path: readonly string[];
  readonly #parameters: URLSearchParams;
  readonly #isSecure: boolean | null;

  constructor(url: URL, { port = 0, parameters, isSecure }: StoreUrlRules) {
    this.protocol = url.protocol;
    this.#parameters = url.searchParams;
    this.#isSecure = isSecure;
    const known = isSecure === null ? parameters : [...parameters, ...HOSTS, ...FILES];
    checkParameters(url, known);
    // `new URL` takes what follows "redis:" for a path.
    if (isSecure !== null && !/^(\/|$)/.test(url.pathname)) {
      const rule = `must have its host behind //, as in ${url.protocol}//host:${port}`;
      throw new InvalidOptionError("url", url.protocol, rule);
    }
    this.username = decode(url.username, "user name") || undefined;
    this.password = decode(url.password, "password") || undefined;
    const further = HOSTS.flatMap((name) => url.searchParams.getAll(name));
    this.hosts = [url.host, ...further].map((text) => addressOf(text, port));
    const parts = url.pathname.split("/").filter((part) => part !== "");
    this.path = parts.map((part) => decode(part, "path"));
  }

  text(name: string): string | undefined {
    return this.#parameters.get(name) ?? undefined;
  }

  /** The given ones of some parameters, as numbers. */
  numbers<Name extends string>(...names: readonly Name[]): { [K in Name]?: number } {
    const given = names.flatMap((name) => {
      const text = this.text(name);
      if (text === undefined) return [];
      if (/^\d+(\.\d+)?$/.test(text)) return [[name, Number(text)]];
      throw new InvalidOptionError(name, text, "must be a number");
    });
    return Object.fromEntries(given);
  }

  /** The files of `ca`, `cert` and `key`; null where connections are not encrypted. */
  async tls(): Promise<TlsFiles | null> {
    const given = FILES.filter((name) => this.#parameters.has(name));
    if (!this.#isSecure) {
      const [name] = given;
      if (name === undefined) return null;
      throw new InvalidOptionError("url", name, "is for connections with TLS only");
    }
    if (given.includes("cert") !== given.includes("key")) {
      throw new InvalidOptionError("url", given, "must have cert and key, or neither");
    }
    const files: TlsFiles = Object.fromEntries(
      await Promise.all(given.map(async (name) => [name, await this.#file(name)])),
    );
    try {
      // Clients throw errors of their own for files that they cannot use, some of them uncaught.
      // Loaded here: most programs use no TLS.
      process.getBuiltinModule("node:tls").createSecureContext(files);
    } catch (error) {
      const rule = `must name PEM files that fit (${(error as Error).message})`;
      throw new InvalidOptionError("url", given, rule);
    }
    return files;
  }

  async #file(name: (typeof FILES)[number]): Promise<Buffer> {
    const path = this.text(name) ?? "";
    try {
      return await process.getBuiltinModule("node:fs/promises").readFile(path);
    } catch (error) {
      const { code = "unknown" } = error as NodeJS.ErrnoException;
      throw new InvalidOptionError(name, path, `must be the path of a file to read (${code})`);
    }
  }
}

function addressOf(text: string, usualPort: number): Address {
  const match = /^(?:\[([\da-f:.]+)\]|([^:[\]/?#@\s]*))(?::(\d+))?$/i.exec(text);
  const [, address, name, port = usualPort] = match ?? [];
  if (!match || Number(port) > MAX_PORT) throw hidden(ADDRESSES);
  return { host: address || name || "127.0.0.1", port: Number(port) };
}

function hidden(rule: string): InvalidOptionError {
  return invalidValue("url", "(hidden)", rule);
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    const rule = `must have the ${part} encoded: a % that is no part of %XX is written as %25`;
    throw hidden(rule);
  }
}
