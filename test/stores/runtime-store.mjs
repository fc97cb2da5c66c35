// Opens a store of the installed package in any runtime; also in child processes of the kit.
import { openEtcdStore } from "holdfast/etcd";
import { fileStore } from "holdfast/file";
import { openMemoryStore } from "holdfast/memory";
import { openPostgresStore } from "holdfast/postgres";
import { openRedisStore } from "holdfast/redis";
import { openZookeeperStore } from "holdfast/zookeeper";

/** @typedef {import("holdfast/store").Store} Store */
/** @type {Record<string, (url: URL) => Store | Promise<Store>>} */
const openers = {
  "etcd:": openEtcdStore,
  "postgres:": openPostgresStore,
  "redis:": openRedisStore,
  "zookeeper:": openZookeeperStore,
};

/** @param {{ url: string, namespace: string }} place */
export async function openStore({ url, namespace }) {
  const { protocol, pathname } = new URL(url);
  if (protocol === "memory:") return openMemoryStore(new URL(`memory:${namespace}`));
  // A file per case: a process that stops inside a transaction blocks no other case.
  const path = `${pathname}/${namespace.slice(0, 13)}.db`;
  if (protocol === "file:") return fileStore({ path, namespace });
  const open = openers[protocol];
  if (!open) throw new Error(`there is no store for ${protocol}`);
  return open(new URL(`${url}?namespace=${namespace}`));
}
