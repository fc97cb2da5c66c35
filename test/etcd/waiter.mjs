// Waits for the mutex "m" in the etcd of its first argument, for at most the storeTimeoutMs of its
// second argument without an answer; sends the state of its lease, or the code of the error.
import { Holdfast } from "../../dist/index.js";
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

const [url = "", storeTimeoutMs] = process.argv.slice(2);
const locks = new Holdfast(await openEtcdStore(new URL(url)), {
  ttlMs: 20_000,
  storeTimeoutMs: Number(storeTimeoutMs),
});
const state = await locks
  .mutex("m")
  .acquire({ waitMs: 60_000 })
  .then(
    (lease) => lease.state,
    (error) => error.code,
  );
process.send?.(state);
await locks.close();
