import type {
  LockId,
  OwnEntry,
  Sequencer,
  StoreSession,
} from "../../src/families/session/sequencer.js";
import type { SimulatedProcess } from "../process.js";

/**
 * The sequencer of a simulated process: notes when an answer or a watch tells the process that an
 * entry of it has left.
 */
export function notingEnds(sequencer: Sequencer, process: SimulatedProcess): Sequencer {
  const learn = ({ lock, token }: OwnEntry): void => {
    process.learn({ name: nameOf(lock), token });
  };
  const homes: Homes = new WeakMap();
  return override(sequencer, {
    openSession: async (ttlMs, limitMs) =>
      notingProofs(await sequencer.openSession(ttlMs, limitMs), homes, learn),
    watchOwn: (entry, since, listener) =>
      sequencer.watchOwn(entry, since, (change) => {
        if (change.type === "gone") learn(entry);
        listener(change);
      }),
    revoke: async (lock, token, reason, limitMs) => {
      const isDone = await sequencer.revoke(lock, token, reason, limitMs);
      // The lease may be one of its own.
      if (isDone) process.learn({ name: nameOf(lock), token });
      return isDone;
    },
  });
}

function nameOf({ space, name }: LockId): string {
  return space === "lock" ? name : `${space} ${name}`;
}

/** The sessions that entries have moved to. */
type Homes = WeakMap<OwnEntry, StoreSession>;

function notingProofs(
  storeSession: StoreSession,
  homes: Homes,
  learn: (entry: OwnEntry) => void,
): StoreSession {
  const { adopt } = storeSession;
  return override(storeSession, {
    prove: async (entries, limitMs) => {
      const proof = await storeSession.prove(entries, limitMs);
      for (const entry of proof.type === "gone" ? entries : proof.missing) {
        // The proof of a session tells nothing about an entry that has moved to another.
        if ((homes.get(entry) ?? storeSession) === storeSession) learn(entry);
      }
      return proof;
    },
    ...(adopt && {
      adopt: async (entry: OwnEntry, limitMs: number) => {
        homes.set(entry, storeSession);
        const isThere = await adopt.call(storeSession, entry, limitMs);
        if (!isThere) learn(entry);
        return isThere;
      },
    }),
  });
}

/** The object with some of its methods replaced; all others run as they are. */
function override<T extends object>(object: T, methods: Partial<T>): T {
  return new Proxy(object, {
    get(target, key) {
      const replaced = Reflect.get(methods, key);
      if (replaced !== undefined) return replaced;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
