import type { KeyValue } from "../../src/stores/etcd/wire/messages.js";
import type { EntryReader } from "./queue-account.js";

const ENTRY = /^(?:holdfast:(once)\/)?([^/]*)\/([0-9a-f]+)\.([xs])\.(\d+)\.(\d+|-)\.[\w-]+$/;

/** Reads the entries of the etcd store from its keys. */
export const etcdEntryReader: EntryReader<KeyValue> = {
  read: (key, { createRevision }) => {
    const found = ENTRY.exec(key);
    if (!found) return null;
    const [, once, name = "", session = "", letter, weight, limit] = found;
    return {
      name: once ? `once ${name}` : name,
      token: createRevision,
      session,
      isExclusive: letter === "x",
      weight: Number(weight),
      limit: limit === "-" ? Number.POSITIVE_INFINITY : Number(limit),
    };
  },
  textOf: ({ value }) => value,
};
