import type { Holdfast } from "../api/holdfast.js";
import { InvalidOptionError } from "../errors/index.js";
import { knownOptions } from "../options/known-options.js";
import type { AuditLine } from "./revocation.js";

/** How a dashboard is shown, and to whom. */
export interface DashboardOptions {
  /**
   * Says who asks: the name goes into the audit and to holders that are revoked. Null refuses the
   * request. It is asked before any data is shown, and may look at cookies and headers.
   */
  readonly authorize: (request: Request) => string | null | Promise<string | null>;
  /**
   * The values of the header `Host` that are answered, with a port where only that port counts.
   * Default: `localhost`, `127.0.0.1` and `[::1]`.
   */
  readonly hosts?: readonly string[] | undefined;
  /** The path that the dashboard is mounted at, such as `/locks`. Default `/`. */
  readonly path?: string | undefined;
  /** Whether leases may be revoked, or which of the people may do it. Default false. */
  readonly allowRevoke?: boolean | ((actor: string) => boolean | Promise<boolean>) | undefined;
  /** Takes the lines of the audit; required with `allowRevoke`. A line that it refuses, by a throw,
   * stops the revocation. */
  readonly onAudit?: ((line: AuditLine) => void | Promise<void>) | undefined;
  /** How often to look at the store while there is a viewer; at least 250. Default 1,000. */
  readonly everyMs?: number | undefined;
  /** The heading, such as the name of the deployment. Default `Holdfast`. */
  readonly title?: string | undefined;
}

/** The options with their defaults. */
export type CheckedOptions = Omit<DashboardOptions, "hosts"> & {
  readonly hosts: readonly string[] | undefined;
  readonly path: string;
  readonly everyMs: number;
  readonly title: string;
};

const NAMES = ["authorize", "hosts", "path", "allowRevoke", "onAudit", "everyMs", "title"] as const;
const EXAMPLE = "must be an object: { authorize: (request) => userOf(request) }";
const MIN_EVERY_MS = 250;

export function checkedOptions(given: DashboardOptions): CheckedOptions {
  const options = knownOptions(given, NAMES, EXAMPLE);
  const { authorize, hosts, path = "/", allowRevoke = false, onAudit } = options;
  const { everyMs = 1_000, title = "Holdfast" } = options;
  if (typeof authorize !== "function") {
    const rule =
      "must be a function that names who asks, or null: without it everybody could see the locks";
    throw new InvalidOptionError("authorize", authorize, rule);
  }
  if (allowRevoke !== false && typeof onAudit !== "function") {
    const rule = "must be a function where allowRevoke is given: no revocation without its audit";
    throw new InvalidOptionError("onAudit", onAudit, rule);
  }
  if (hosts !== undefined && !isListOfNames(hosts)) {
    throw new InvalidOptionError("hosts", hosts, 'must be a list of names: ["ops.example.com"]');
  }
  if (typeof path !== "string" || !/^\/([\w.~-]+\/?)*$/.test(path)) {
    throw new InvalidOptionError("path", path, "must begin with a slash: /locks");
  }
  if (!(everyMs >= MIN_EVERY_MS && everyMs < 2 ** 31)) {
    throw new InvalidOptionError("everyMs", everyMs, `must be at least ${MIN_EVERY_MS}`);
  }
  return { ...options, hosts, path: path.replace(/\/$/, ""), allowRevoke, everyMs, title };
}

function isListOfNames(hosts: unknown): boolean {
  return Array.isArray(hosts) && hosts.every((host) => typeof host === "string" && host !== "");
}

/** The part of a Holdfast that a dashboard uses. */
export type ShownLocks = Pick<Holdfast, "list" | "inspect" | "held" | "revoke" | "examine">;
