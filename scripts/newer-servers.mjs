// Provides servers of other versions than the installed ones, for the tests.
// Alone: node scripts/newer-servers.mjs valkey-9 etcd-3.5
//
// The packages come from the Debian archive that this system's apt is set up for, from the suites
// named below. Nothing is installed and root is not needed: apt works with a state of its own, the
// packages are unpacked into a cache of this user, and each program is started with the loader and
// the libraries of its own suite.

import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const exec = promisify(execFile);

/**
 * Where each server comes from. Dependencies come from all of the suites, the packages themselves
 * from the last one. A name ends with the version that the packages must bring.
 *
 * @type {Record<string, { suites: readonly string[], packages: readonly string[] }>}
 */
const catalog = {
  "redis-6.0": { suites: ["bullseye"], packages: ["redis-server"] },
  "redis-8": { suites: ["forky", "experimental"], packages: ["redis-server"] },
  "valkey-8": { suites: ["bookworm", "bookworm-backports"], packages: ["valkey-server"] },
  "valkey-9": { suites: ["forky"], packages: ["valkey-server"] },
  "etcd-3.5": { suites: ["forky"], packages: ["etcd-server", "etcd-client"] },
};

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "holdfast/servers");

/**
 * The folder with the programs of a server: `redis-server` and `redis-cli` (also of Valkey), or
 * `etcd` and `etcdctl`. It exists after `fetchServer`.
 *
 * @param {string} name
 */
export function programsOf(name) {
  if (!(name in catalog)) {
    throw new Error(`no server "${name}": choose from ${Object.keys(catalog).join(", ")}`);
  }
  return join(cache, name, "bin");
}

/**
 * The folders that HOLDFAST_SERVERS selects: each of its entries is a name of the catalog or the
 * path of a folder with programs.
 */
export function selectedPrograms(selection = process.env.HOLDFAST_SERVERS ?? "") {
  return selection.split(",").flatMap((entry) => {
    if (entry === "") return [];
    const isPath = entry.includes("/");
    const folder = isPath ? resolve(entry) : programsOf(entry);
    if (existsSync(folder)) return [folder];
    const advice = isPath ? "" : `: node scripts/newer-servers.mjs ${entry} fetches it`;
    throw new Error(`HOLDFAST_SERVERS: there is no folder ${folder}${advice}`);
  });
}

/**
 * Fetches a server unless it is in the cache; rejects with one line when it cannot be had. Two runs
 * at once may both fetch it: each works in a folder of its own, and the first one to finish names
 * its folder for both.
 *
 * @param {string} name
 * @returns {Promise<string>} the version, with the word before it: "Valkey 9.1.0"
 */
export async function fetchServer(name) {
  const programs = programsOf(name);
  if (existsSync(programs)) return await versionIn(programs);
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, `.${name}-`));
  try {
    await unpack(name, join(staging, "root"));
    writeStarters(staging, join(cache, name));
    renameSync(staging, join(cache, name));
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    if (!existsSync(programs)) throw new Error(`${name} cannot be had: ${firstLine(error)}`);
  }
  const version = await versionIn(programs);
  if (`${version}.`.includes(` ${name.split("-")[1]}.`)) return version;
  rmSync(join(cache, name), { recursive: true, force: true });
  throw new Error(`${name} cannot be had: the archive has ${version} now`);
}

/**
 * Downloads the packages of a server with all that they depend on, and unpacks them in `folder`.
 *
 * @param {string} name
 * @param {string} folder
 */
async function unpack(name, folder) {
  const { suites, packages } = /** @type {typeof catalog[string]} */ (catalog[name]);
  const apt = `${folder}.apt`;
  const archives = join(apt, "cache/archives");
  for (const path of ["lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(apt, path), { recursive: true });
  }
  const archive = await debianArchive();
  const keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
  const sources = suites.map((suite) => `deb [signed-by=${keys}] ${archive} ${suite} main\n`);
  writeFileSync(join(apt, "sources.list"), sources.join(""));
  writeFileSync(join(apt, "status"), "");
  writeFileSync(join(apt, "apt.conf"), await configuration(apt, suites.at(-1) ?? ""));

  const env = { ...process.env, APT_CONFIG: join(apt, "apt.conf"), LC_ALL: "C" };
  await exec("apt-get", ["-qq", "update"], { env });
  await exec("apt-get", ["-qq", "--yes", "--download-only", "install", ...packages], { env });
  for (const file of readdirSync(archives)) {
    if (file.endsWith(".deb")) await exec("dpkg-deb", ["-x", join(archives, file), folder]);
  }
  rmSync(apt, { recursive: true });
}

/**
 * The archive that this system's own packages come from, found without its package lists, which a
 * fresh container has not.
 */
async function debianArchive() {
  const { stdout } = await exec("apt-get", ["update", "--print-uris"]);
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  const archive = new RegExp(`^'(.+)/dists/${codename}/InRelease'`, "m").exec(stdout)?.[1];
  if (!archive) throw new Error("apt has no sources of Debian");
  return archive;
}

/**
 * Everything that apt writes goes below `apt`. Of the system's configuration only the way to the
 * network counts, for its hooks may clean up caches of the system.
 *
 * @param {string} apt
 * @param {string} suite
 */
async function configuration(apt, suite) {
  const { stdout } = await exec("apt-config", ["dump", "Acquire"]);
  const network = stdout.split("\n").filter((line) => !/IndexTargets|Languages/.test(line));
  return `${network.join("\n")}
Acquire::Languages "none";
Acquire::http::Timeout "15";
Acquire::https::Timeout "15";
APT::Default-Release "${suite}";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Dir::Cache "${apt}/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "${apt}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "${apt}";
Dir::State::status "${apt}/status";
`;
}

/**
 * Writes `bin`: a script for each program. Those of Valkey are called as Redis calls them.
 *
 * @param {string} folder
 * @param {string} finalFolder where the programs will be when they are started
 */
function writeStarters(folder, finalFolder) {
  const libraries = ["root/usr/lib", "root/lib"].flatMap((path) => {
    const below = existsSync(join(folder, path)) ? readdirSync(join(folder, path)) : [];
    return below.filter((name) => name.endsWith("-linux-gnu")).map((name) => join(path, name));
  });
  const loader = libraries
    .flatMap((path) => readdirSync(join(folder, path)).map((file) => join(path, file)))
    .find((path) => /\/ld-linux[^/]*$/.test(path));
  if (!loader) throw new Error("its packages bring no loader");
  mkdirSync(join(folder, "bin"));
  const within = (/** @type {string} */ path) => join(finalFolder, path);
  const search = libraries.map(within).join(":");
  for (const program of readdirSync(join(folder, "root/usr/bin"))) {
    if (!/^((redis|valkey)-(server|cli)|etcd|etcdctl)$/.test(program)) continue;
    const starter = join(folder, "bin", program.replace("valkey", "redis"));
    const command = [within(loader), "--library-path", search, within(`root/usr/bin/${program}`)];
    writeFileSync(
      starter,
      `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`,
    );
    chmodSync(starter, 0o755);
  }
}

/**
 * The name and version of the server in a folder: "Redis 8.6.3", "etcd 3.5.16".
 *
 * @param {string} programs
 */
async function versionIn(programs) {
  const isEtcd = existsSync(join(programs, "etcd"));
  const { stdout } = await exec(join(programs, isEtcd ? "etcd" : "redis-server"), ["--version"]);
  const [, word, number] = /^(\w+).*?(?:v=|Version: )([\d.]+)/.exec(stdout) ?? [];
  return `${word} ${number}`;
}

/** @param {unknown} error */
function firstLine(error) {
  const text = error instanceof Error ? error.message : String(error);
  const lines = text.split("\n").filter((line) => /^E: /.test(line));
  return (lines[0] ?? text.split("\n")[0] ?? text).replace(/^E: /, "");
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const names = process.argv.slice(2);
  for (const name of names.length > 0 ? names : Object.keys(catalog)) {
    try {
      console.log(`${name}: ${await fetchServer(name)} in ${programsOf(name)}`);
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
      process.exitCode = 1;
    }
  }
}
