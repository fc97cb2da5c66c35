import { UnsupportedError } from "../../errors/index.js";
import { revokedText } from "../../families/session/entry-text.js";
import type { LockId } from "../../families/session/sequencer.js";
import type { Timers } from "../../time/timers.js";
import { nullIfAbsent } from "./errors.js";
import { Mark } from "./marks.js";
import type { WatchTools } from "./queues.js";
import { ZnodeWatch } from "./watches.js";
import { remove, setData } from "./wire/requests.js";

/** The owner of an entry has this long to read the reason, and to leave by itself. */
const TOLD_MS = 250;
const NO_SESSION = "0";

/**
 * Writes the reason into the entry, which tells its owner, and removes the entry when its owner has
 * not. Only a znode that ends with a session is an entry. Other znodes belong to other programs.
 */
export async function revoke(
  tools: WatchTools,
  lock: LockId,
  { token, reason }: { readonly token: bigint; readonly reason: string },
  limitMs: number,
): Promise<boolean> {
  const { session, layout, reader, timers } = tools;
  const read = session.useLatest((one) => reader.read(one, lock, "texts"), limitMs);
  const { entries, mark } = await read;
  if (mark instanceof Mark && mark.token === token) return removeZnode(tools, mark.path, limitMs);
  const entry = entries.find((one) => one.token === token);
  if (!entry) return false;
  const path = `${layout.queue(lock)}/${entry.id}`;
  if (entry.session === NO_SESSION) throw notRevocable(path, lock);
  const data = Buffer.from(revokedText(entry.text ?? "", reason));
  const told = await session.use(
    (one) => one.send(setData(path, data)).catch(nullIfAbsent),
    limitMs,
  );
  if (!told) return false;
  await isGone(path, tools, timers);
  await removeZnode(tools, path, limitMs);
  return true;
}

function removeZnode({ session }: WatchTools, path: string, limitMs: number): Promise<boolean> {
  return session.use(async (connection) => {
    return (await connection.send(remove(path)).catch(nullIfAbsent)) !== null;
  }, limitMs);
}

/** Resolves when the znode is gone, and when that takes too long. */
function isGone(path: string, { session }: WatchTools, timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      watch.close();
      resolve();
    };
    const timer = timers.after(TOLD_MS, end, true);
    const listener = { onData: () => {}, onGone: end, onBroken: end };
    const watch = new ZnodeWatch(path, session, timers, listener);
  });
}

function notRevocable(path: string, { name }: LockId): UnsupportedError {
  return new UnsupportedError(
    `The znode ${JSON.stringify(path)} blocks the lock, but is no lock entry: it ends with no ` +
      "session. It was left alone; delete it by hand if nothing needs it.",
    { lockName: name, store: "zookeeper" },
  );
}
