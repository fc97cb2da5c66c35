import { describe, expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { CountedMoment } from "../../../test/fixtures/moment.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import { HeldEntries } from "./held-entries.js";
import { Queue, type Waiter } from "./queue.js";
import type { Entry, Listing, LockId, Obstacle, QueueChange, Sequencer } from "./sequencer.js";

/** A queue whose store says just what a test wants it to, and when. */
class Scene {
  readonly log: string[] = [];
  readonly runtime = new ManualRuntime();
  readonly held = new HeldEntries();
  readonly queue: Queue;
  readonly #listeners = new Map<string, (change: QueueChange) => void>();
  #answer: (listing: Listing) => void = () => {};

  constructor(space: Space = "lock") {
    const look = (how: string) => () => {
      this.log.push(how);
      return new Promise<Listing>((resolve) => (this.#answer = resolve));
    };
    const sequencer = {
      runtime: this.runtime,
      list: look("list"),
      watchQueue: (
        _lock: LockId,
        obstacle: Obstacle,
        seen: Listing,
        told: (change: QueueChange) => void,
      ) => {
        const key = obstacle.type === "entry" ? obstacle.id : "all";
        this.log.push(`watch ${key} from ${(seen.moment as CountedMoment).count}`);
        this.#listeners.set(key, told);
        const close = (): void => void this.log.push(`unwatch ${key}`);
        return { close, list: look(`list by ${key}`) };
      },
    } as unknown as Sequencer;
    this.queue = new Queue({ space, name: "n" }, sequencer, this.held);
  }

  /** `seen`: the listing that shows the entry, or the moment at which it came behind others. */
  wait(id: string, seen: Listing | number, patienceMs = 10_000): Waiter {
    const over = (word: string) => () => {
      this.log.push(`${id} ${word}`);
      this.queue.remove(waiter);
    };
    const waiter: Waiter = {
      entry: { id, token: tokenOf(id) } as Waiter["entry"],
      patienceMs,
      onTurn: over("holds"),
      onMissing: over("missing"),
      onMark: over("done"),
      onFailure: over("fails"),
      onUnanswered: () => {},
      onAnswered: () => {},
    };
    if (typeof seen === "number") this.queue.addBehind(waiter, new CountedMoment(seen));
    else this.queue.add(waiter, seen);
    return waiter;
  }

  tell(key: string, change: QueueChange): void {
    this.#listeners.get(key)?.(change);
  }

  async answer(seen: Listing): Promise<void> {
    this.#answer(seen);
    await new Promise((resume) => setImmediate(resume));
  }

  taken(): string[] {
    return this.log.splice(0);
  }
}

function listing(at: number, ...ids: string[]): Listing {
  return { moment: new CountedMoment(at), entries: ids.map((id) => entry(id)), mark: null };
}

/** Ids end with a token: `b5`. Those that begin with `s` are shared. */
function entry(id: string): Entry {
  const mode = id.startsWith("s") ? "shared" : "exclusive";
  return { id, mode, weight: 1, limit: NO_LIMIT, token: tokenOf(id), session: "", text: null };
}

function tokenOf(id: string): bigint {
  return BigInt(id.slice(1));
}

function left(at: number, ...ids: string[]): QueueChange {
  return { type: "left", listing: listing(at, ...ids), moment: new CountedMoment(at) };
}

function changed(at: number | null): QueueChange {
  return { type: "changed", moment: at === null ? null : new CountedMoment(at) };
}

describe("a queue in which nothing changes", () => {
  const seen = listing(5, "a3", "b5", "c6");

  it("is listed every few seconds", async () => {
    const scene = new Scene();
    scene.wait("b5", seen);
    scene.taken();
    await scene.runtime.advance(2_999);
    expect(scene.taken()).toEqual([]);
    await scene.runtime.advance(1);
    expect(scene.taken()).toEqual(["list"]);
  });

  it("is listed within the patience of its waiters, so that a silence is noticed", async () => {
    const scene = new Scene();
    scene.wait("b5", seen);
    scene.wait("c6", seen, 2_000);
    scene.taken();
    await scene.runtime.advance(1_600);
    expect(scene.taken()).toEqual(["list"]);
  });

  it("is not listed all the time for a waiter without any patience", async () => {
    const scene = new Scene();
    scene.wait("b5", seen, 1);
    scene.taken();
    await scene.runtime.advance(1_199);
    expect(scene.taken()).toEqual([]);
  });
});

describe("the waiter directly behind the holders", () => {
  it("holds when the entries that are left begin with its own", () => {
    const scene = new Scene();
    scene.wait("b5", listing(5, "a3", "b5"));
    scene.tell("all", left(9, "b5"));
    expect(scene.taken()).toEqual(["watch all from 5", "b5 holds", "unwatch all"]);
  });

  it("does not hold when its own entry left as well", async () => {
    const scene = new Scene();
    scene.wait("b5", listing(5, "a3", "b5"));
    scene.tell("all", left(9));
    expect(scene.taken()).toEqual(["watch all from 5", "list by all"]);
    await scene.answer(listing(9));
    expect(scene.taken()).toEqual(["b5 missing", "unwatch all"]);
  });

  it("lists the queue while an entry is left ahead of it", () => {
    const scene = new Scene();
    scene.wait("b5", listing(5, "s2", "s3", "b5"));
    scene.tell("all", left(8, "s3", "b5"));
    expect(scene.taken()).toEqual(["watch all from 5", "list by all"]);
    scene.tell("all", left(9, "b5"));
    expect(scene.taken()).toEqual(["b5 holds", "unwatch all"]);
  });

  it.each([
    ["is shared: it may have to tell later entries", "lock", "s5"],
    ["waits for a once: a mark may have been left", "once", "b5"],
  ] as const)("lists the queue where it %s", (_why, space, id) => {
    const scene = new Scene(space);
    scene.wait(id, listing(5, "a3", id));
    scene.tell("all", left(9, id));
    expect(scene.taken()).toEqual(["watch all from 5", "list by all"]);
    scene.queue.close();
  });

  it("lists the queue when a change came before the watch began", async () => {
    const scene = new Scene();
    scene.wait("b5", listing(5, "a3", "b5"));
    scene.tell("all", changed(7));
    await scene.answer(listing(7, "b5"));
    expect(scene.taken()).toEqual(["watch all from 5", "list by all", "b5 holds", "unwatch all"]);
  });
});

describe("a change that is told while the queue is being listed", () => {
  async function toldMeanwhile(change: QueueChange, seen: Listing): Promise<string[]> {
    const scene = new Scene();
    scene.wait("c5", listing(5, "a3", "b4", "c5"));
    scene.tell("b4", changed(7));
    scene.tell("b4", change);
    scene.taken();
    await scene.answer(seen);
    scene.queue.close();
    return scene.taken();
  }

  it("is not listed again where the listing shows it", async () => {
    expect(await toldMeanwhile(changed(8), listing(8, "a3", "b4", "c5"))).toEqual(["unwatch b4"]);
  });

  it("is listed again where the listing is older", async () => {
    const log = await toldMeanwhile(changed(8), listing(7, "a3", "b4", "c5"));
    expect(log).toEqual(["list", "unwatch b4"]);
  });

  it("is listed again where the store does not tell when it happened", async () => {
    const log = await toldMeanwhile(changed(null), listing(9, "a3", "b4", "c5"));
    expect(log).toEqual(["list", "unwatch b4"]);
  });
});

it("ignores a change that a listing has shown already", () => {
  const scene = new Scene();
  scene.wait("c5", listing(5, "a3", "b4", "c5"));
  scene.queue.see(listing(9, "a3", "b4", "c5"));
  scene.tell("b4", changed(8));
  expect(scene.taken()).toEqual(["watch b4 from 5"]);
  scene.queue.close();
});

it("judges no waiter by a listing that is older than its entry", () => {
  const scene = new Scene();
  const waiter = scene.wait("b5", listing(5, "a3", "b5"));
  scene.queue.see(listing(4, "a3"));
  expect(scene.taken()).toEqual(["watch all from 5", "list"]);
  scene.queue.remove(waiter);
});

it("watches nothing while only entries of this process are ahead", () => {
  const scene = new Scene();
  scene.held.add(scene.queue.lock, "a3");
  scene.wait("b5", listing(5, "a3", "b5"));
  scene.queue.see(listing(6, "b5"));
  expect(scene.taken()).toEqual(["b5 holds"]);
});

it("does not take another entry with the same id for its own", async () => {
  const scene = new Scene();
  scene.wait("b5", listing(5, "a3", "b5"));
  scene.tell("all", { type: "broken" });
  const other = { ...entry("b5"), token: 8n };
  await scene.answer({ moment: new CountedMoment(9), entries: [other], mark: null });
  expect(scene.taken()).toEqual(["watch all from 5", "list", "b5 missing"]);
});

it("forgets the listings of a store that has lost its data since", async () => {
  const scene = new Scene();
  scene.wait("c5", listing(5, "a3", "b4", "c5"));
  scene.queue.see(listing(9, "a3", "b4", "c5"));
  scene.queue.look();
  await scene.answer(listing(4, "a3"));
  const waiter = scene.wait("d6", listing(6, "a3", "d6"));
  expect(scene.taken()).toEqual([
    "watch b4 from 5",
    "list",
    "unwatch b4",
    "c5 missing",
    "watch all from 6",
  ]);
  scene.queue.remove(waiter);
});

describe("a crowd of waiters behind a lease of this process", () => {
  function crowd(): Scene {
    const scene = new Scene();
    scene.held.add(scene.queue.lock, "a3");
    scene.wait("b5", listing(5, "a3", "b5"));
    scene.wait("c6", 6);
    scene.wait("d7", 7);
    expect(scene.taken()).toEqual([]);
    return scene;
  }

  /** The entry left, and the one behind it was found, if one was asked for. */
  function leave(scene: Scene, id: string, at: number, isNextThere = true): void {
    const own = { id, token: tokenOf(id) } as Waiter["entry"];
    const next = scene.queue.nextAfter(own);
    scene.log.push(`${id} leaves before ${next?.id ?? "a listing"}`);
    const found = next && isNextThere ? { entry: next, at: new CountedMoment(at) } : null;
    scene.queue.left(own, found);
  }

  it("needs no listing for the next that is known", () => {
    const scene = crowd();
    leave(scene, "a3", 8);
    expect(scene.taken()).toEqual(["a3 leaves before b5", "b5 holds"]);
  });

  it("is listed where the entry of the next has left as well", async () => {
    const scene = crowd();
    leave(scene, "a3", 8, false);
    expect(scene.taken()).toEqual(["a3 leaves before b5", "list"]);
    await scene.answer(listing(9, "c6", "d7"));
    expect(scene.taken()).toEqual(["c6 holds", "b5 missing", "watch all from 9"]);
    scene.queue.close();
  });

  it("asks for a listing when no waiter that it shows is left, and goes on with that", () => {
    const scene = crowd();
    leave(scene, "a3", 8);
    scene.held.add(scene.queue.lock, "b5");
    expect(scene.queue.nextAfter({ id: "b5" } as Waiter["entry"])).toBe(null);
    scene.taken();
    scene.queue.see(listing(9, "c6", "d7"));
    leave(scene, "c6", 10);
    expect(scene.taken()).toContain("d7 holds");
  });

  it("watches an entry of another process that is next", () => {
    const scene = new Scene();
    scene.held.add(scene.queue.lock, "a3");
    scene.wait("b4", listing(6, "a3", "b4", "x5", "c6"));
    scene.wait("c6", listing(6, "a3", "b4", "x5", "c6"));
    scene.taken();
    leave(scene, "a3", 8);
    expect(scene.taken()).toEqual(["a3 leaves before b4", "b4 holds", "watch x5 from 6"]);
    scene.queue.close();
  });

  it("serves a shared waiter, and one of a once, by a listing only", () => {
    for (const [space, id] of [
      ["lock", "s5"],
      ["once", "b5"],
    ] as const) {
      const scene = new Scene(space);
      scene.wait(id, listing(5, "a3", id));
      expect(scene.queue.nextAfter({ id: "a3" } as Waiter["entry"])).toBe(null);
      scene.queue.close();
    }
  });

  it("is listed when its first waiter gives up in front of one that may hold now", () => {
    const scene = new Scene();
    const seen = listing(7, "s3", "b5", "s7");
    const waiter = scene.wait("b5", seen);
    scene.wait("s7", seen);
    scene.queue.remove(waiter);
    scene.taken();
    leave(scene, "b5", 8);
    expect(scene.taken()).toEqual(["b5 leaves before a listing", "list"]);
    scene.queue.close();
  });
});

describe("a waiter that came behind another one", () => {
  it("is looked for at once where that one has left the queue meanwhile", () => {
    const scene = new Scene();
    scene.wait("c6", 6);
    expect(scene.taken()).toEqual(["list"]);
  });

  it("is looked for where a listing from before shows no waiter", async () => {
    const scene = new Scene();
    const first = scene.wait("b5", listing(5, "a3", "b5"));
    scene.queue.look();
    scene.wait("c6", 6);
    scene.queue.remove(first);
    scene.taken();
    await scene.answer(listing(5, "a3", "b5"));
    expect(scene.taken()).toEqual(["list"]);
    await scene.answer(listing(8, "a3", "c6"));
    expect(scene.taken()).toEqual(["unwatch all", "watch all from 8"]);
    scene.queue.close();
  });
});
