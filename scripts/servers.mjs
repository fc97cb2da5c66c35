// Makes sure that the servers which the tests start are installed.
// Alone: node scripts/servers.mjs redis etcd
//
// A server that is missing is installed from Debian's packages, if this process is root, without
// starting the services of the distribution: the tests start their own servers on free ports in
// temporary folders. Without root it fails and says what to type.

import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * A program that must be found, how to find it, and the Debian package that brings it.
 *
 * @typedef {{ what: string, find: () => boolean, from: string }} Part
 */

/** @type {Record<string, readonly Part[]>} */
const needs = {
  redis: [
    { what: "redis-server", find: () => onPath("redis-server"), from: "redis-server" },
    { what: "redis-cli", find: () => onPath("redis-cli"), from: "redis-tools" },
  ],
  etcd: [
    { what: "etcd", find: () => onPath("etcd"), from: "etcd-server" },
    { what: "etcdctl", find: () => onPath("etcdctl"), from: "etcd-client" },
  ],
  zookeeper: [
    { what: "java", find: () => onPath("java"), from: "default-jre-headless" },
    { what: "zookeeper.jar", find: () => jar("zookeeper.jar"), from: "zookeeper" },
    { what: "slf4j-simple.jar", find: () => jar("slf4j-simple.jar"), from: "libslf4j-java" },
    { what: "netty-codec.jar", find: () => jar("netty-codec.jar"), from: "libnetty-java" },
  ],
  postgres: [
    { what: "postgres", find: findPostgres, from: "postgresql-15" },
    { what: "pgbouncer", find: findPgbouncer, from: "pgbouncer" },
  ],
  chromium: [{ what: "chromium", find: () => onPath("chromium"), from: "chromium" }],
  spin: [
    { what: "spin", find: () => onPath("spin"), from: "spin" },
    { what: "cc", find: () => onPath("cc"), from: "gcc" },
  ],
};

/**
 * Resolves when every named server is installed; says nothing when all are.
 * Rejects with the command to type when one is missing and we may not install it.
 *
 * @param {readonly string[]} names of redis, etcd, zookeeper, postgres, chromium, spin
 */
export async function ensureServers(names) {
  const missing = names.flatMap((name) => missingParts(name));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0 || !onPath("apt-get")) throw new Error(advice(names, missing));

  await step("updating the package lists", ["flock", installLock, "apt-get", "update", "-q"]);
  for (const part of missing) {
    // An earlier package may have brought it along.
    if (part.find()) continue;
    await step(`installing ${part.from}`, ["sh", "-c", installScript, "sh", part.from]);
  }
  const still = names.flatMap((name) => missingParts(name));
  if (still.length > 0) throw new Error(advice(names, still));
}

/** @param {string} name */
function missingParts(name) {
  const parts = needs[name];
  if (!parts) {
    throw new Error(`no server "${name}": choose from ${Object.keys(needs).join(", ")}`);
  }
  return parts.filter((part) => !part.find());
}

/**
 * @param {readonly string[]} names
 * @param {readonly Part[]} missing
 */
function advice(names, missing) {
  const packages = [...new Set(missing.map((part) => part.from))].join(" ");
  return [
    `not found: ${missing.map((part) => part.what).join(", ")}. On Debian or Ubuntu, type one of`,
    `  sudo node scripts/servers.mjs ${names.join(" ")}    (starts no services)`,
    `  sudo apt-get update && sudo apt-get install --yes ${packages}`,
    "elsewhere, put these programs on the PATH.",
  ].join("\n");
}

const installLock = "/run/lock/holdfast-tests-install";

// Debian asks policy-rc.d before a package starts its service; 101 means "not allowed". A policy
// that was there before is put back, by the next run should this one be killed. The lock keeps two
// runs from putting back each other's.
const installScript = `
set -e
exec 9>${installLock}
flock 9
policy=/usr/sbin/policy-rc.d
before=$policy.before-holdfast-tests
restore() {
  rm -f "$policy"
  if [ -e "$before" ]; then mv "$before" "$policy"; fi
}
trap restore EXIT
trap 'exit 130' HUP INT TERM
if [ -e "$policy" ] && [ ! -e "$before" ] && ! grep -q holdfast-tests "$policy"; then
  mv "$policy" "$before"
fi
printf '#!/bin/sh\\n# holdfast-tests: start no services\\nexit 101\\n' >"$policy"
chmod 755 "$policy"
DEBIAN_FRONTEND=noninteractive apt-get install --yes -q --no-install-recommends \\
  -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$1" 9>&-
`;

/**
 * Runs one command behind one line of progress; its output shows only when it fails.
 *
 * @param {string} title
 * @param {readonly [command: string, ...args: string[]]} command
 */
async function step(title, [command, ...args]) {
  const startedMs = performance.now();
  process.stderr.write(`${title} … `);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve(exitCode ?? signal));
  });
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  process.stderr.write(code === 0 ? `${seconds} s\n` : "failed\n");
  if (code !== 0) throw new Error(`${title} ended with ${code}:\n${output.slice(-4000)}`);
}

/** @param {string} name */
function onPath(name) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.some((folder) => folder !== "" && isExecutable(join(folder, name)));
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} name */
function jar(name) {
  return existsSync(join("/usr/share/java", name));
}

/** Debian has it in a folder that the PATH of a user may lack. */
function findPgbouncer() {
  return onPath("pgbouncer") || isExecutable("/usr/sbin/pgbouncer");
}

function findPostgres() {
  const root = "/usr/lib/postgresql";
  if (onPath("postgres")) return true;
  if (!existsSync(root)) return false;
  return readdirSync(root).some((version) => isExecutable(join(root, version, "bin/postgres")));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const names = process.argv.slice(2);
  const say = (/** @type {unknown} */ error) =>
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  try {
    await ensureServers(names.length > 0 ? names : ["redis", "etcd", "postgres"]);
  } catch (error) {
    say(error);
    process.exitCode = 1;
  }
  // Tests that need one of these skip without it.
  for (const name of names.length > 0 ? [] : ["zookeeper"]) await ensureServers([name]).catch(say);
}
