import { describe, expect, it } from "vitest";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import { localPort } from "../../time/port.js";
import { Line, type Waiter } from "./line.js";
import type { Change, Entry, Listing, Sequencer, Watched } from "./sequencer.js";

/** A line whose store says just what a test wants it to, and when. */
class Scene {
  readonly log: string[] = [];
  readonly line: Line;
  readonly #listeners = new Map<string, (change: Change) => void>();
  #answer: (listing: Listing) => void = () => {};

  constructor(space: Space = "lock") {
    const sequencer = {
      list: (_place: unknown, _look: unknown, _limit: unknown, since?: bigint) => {
        this.log.push(`look ${since ?? "now"}`);
        return new Promise<Listing>((resolve) => (this.#answer = resolve));
      },
      watch: (_place: unknown, what: Watched, from: bigint, told: (change: Change) => void) => {
        const key = what.type === "entry" ? what.id : "line";
        this.log.push(`watch ${key} from ${from}`);
        this.#listeners.set(key, told);
        return { close: () => this.log.push(`unwatch ${key}`) };
      },
    } as unknown as Sequencer;
    this.line = new Line(
      { space, name: "n" },
      {
        port: localPort,
        sequencer,
        isHeldHere: () => false,
        onIdle: () => this.log.push("idle"),
      },
    );
  }

  wait(id: string, order: bigint, listing: Listing): Waiter {
    const entry = { id, order } as Waiter["entry"];
    const over = (word: string) => () => {
      this.log.push(`${id} ${word}`);
      this.line.remove(waiter);
    };
    const waiter: Waiter = {
      entry,
      onTurn: over("holds"),
      onMissing: over("missing"),
      onMark: over("done"),
      onFailure: over("fails"),
      onUnanswered: () => {},
      onAnswered: () => {},
    };
    this.line.add(waiter, listing);
    return waiter;
  }

  tell(key: string, change: Change): void {
    this.#listeners.get(key)?.(change);
  }

  async answer(listing: Listing): Promise<void> {
    this.#answer(listing);
    await new Promise((resume) => setImmediate(resume));
  }

  taken(): string[] {
    return this.log.splice(0);
  }
}

function listing(at: bigint, ...ids: string[]): Listing {
  return { at, entries: ids.map((id) => entry(id)), mark: null };
}

/** Its order is in its name. */
function entry(id: string, mode: Entry["mode"] = "exclusive"): Entry {
  const order = BigInt(id.slice(1));
  return { id, mode, weight: 1, limit: NO_LIMIT, order, session: "s", text: null };
}

function gone(at: bigint, ...ids: string[]): Change {
  return { type: "gone", at, ids: new Map(ids.map((id) => [id, at])), revoked: null };
}

describe("the next in line", () => {
  it("holds by the event alone", () => {
    const scene = new Scene();
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", gone(9n, "a3"));
    expect(scene.taken()).toEqual(["watch line from 5", "b5 holds"]);
    scene.line.close();
  });

  it("does not hold when its own entry left together with the holder's", async () => {
    const scene = new Scene();
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", gone(9n, "a3", "b5"));
    expect(scene.taken()).toEqual(["watch line from 5", "look 9"]);
    await scene.answer(listing(9n));
    expect(scene.taken()).toEqual(["b5 missing"]);
    scene.line.close();
  });

  it("does not hold when its own entry had left before the holder's", () => {
    const scene = new Scene();
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", gone(8n, "b5"));
    scene.tell("line", gone(9n, "a3"));
    expect(scene.taken()).toEqual(["watch line from 5", "look 8"]);
    scene.line.close();
  });

  it("looks when somebody left who was not the last before it", async () => {
    const scene = new Scene();
    const shared = [entry("a2", "shared"), entry("a3", "shared"), entry("b5")];
    scene.wait("b5", 5n, { at: 5n, entries: shared, mark: null });
    scene.tell("line", gone(8n, "a2"));
    expect(scene.taken()).toEqual(["watch line from 5", "look 8"]);
    scene.tell("line", gone(9n, "a3"));
    expect(scene.taken()).toEqual(["b5 holds"]);
    scene.line.close();
  });

  it("looks where a mark may have been left", () => {
    const scene = new Scene("once");
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", gone(9n, "a3"));
    expect(scene.taken()).toEqual(["watch line from 5", "look 9"]);
    scene.line.close();
  });

  it("looks where the watch began too late to be told soon", async () => {
    const scene = new Scene();
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", { type: "behind", at: 7n });
    await scene.answer(listing(7n, "b5"));
    expect(scene.taken()).toEqual(["watch line from 5", "look 7", "b5 holds"]);
    scene.line.close();
  });
});

describe("a watch that is kept for the next wait", () => {
  function waitedBefore(): Scene {
    const scene = new Scene();
    scene.wait("b5", 5n, listing(5n, "a3", "b5"));
    scene.tell("line", gone(9n, "a3"));
    scene.tell("line", gone(11n, "b5"));
    scene.taken();
    return scene;
  }

  it("serves it without being made again", () => {
    const scene = waitedBefore();
    scene.wait("b14", 14n, listing(14n, "a10", "b14"));
    scene.tell("line", gone(16n, "a10"));
    expect(scene.taken()).toEqual(["b14 holds"]);
    scene.line.close();
  });

  it("remembers what it told before the listing came", () => {
    const scene = waitedBefore();
    scene.tell("line", gone(16n, "a10"));
    scene.wait("b14", 14n, listing(14n, "a10", "b14"));
    expect(scene.taken()).toEqual(["b14 holds"]);
    scene.line.close();
  });

  it("remembers that the own entry was taken away before the listing came", () => {
    const scene = waitedBefore();
    scene.tell("line", gone(16n, "b14"));
    scene.wait("b14", 14n, listing(14n, "a10", "b14"));
    scene.tell("line", gone(17n, "a10"));
    expect(scene.taken()).toEqual(["look 16"]);
    scene.line.close();
  });

  it("ends when it tells more than anybody here wants to know", () => {
    const scene = waitedBefore();
    scene.tell("line", gone(12n, "c6"));
    expect(scene.taken()).toEqual([]);
    scene.tell("line", gone(13n, "d7"));
    expect(scene.taken()).toEqual(["unwatch line", "idle"]);
  });
});

it("does not take a new holder for one of the same name that left before it came", () => {
  const scene = new Scene();
  const again = { ...entry("a3"), order: 8n };
  scene.wait("b9", 9n, { at: 9n, entries: [again, entry("b9")], mark: null });
  const ids = new Map([
    ["a3", 7n],
    ["c6", 12n],
  ]);
  scene.tell("line", { type: "gone", at: 12n, ids, revoked: null });
  expect(scene.taken()).toEqual(["watch line from 9", "look 12"]);
  scene.line.close();
});

it("does not take another entry of the same name for its own", async () => {
  const scene = new Scene();
  scene.wait("b5", 5n, listing(5n, "a3", "b5"));
  scene.tell("line", { type: "broken" });
  const other = { ...entry("b5"), order: 8n };
  await scene.answer({ at: 9n, entries: [other], mark: null });
  expect(scene.taken()).toEqual(["watch line from 5", "look now", "b5 missing", "idle"]);
});

it("forgets what it was told by a store that has lost its data since", async () => {
  const scene = new Scene();
  scene.wait("b5", 5n, listing(5n, "a3", "b5"));
  scene.tell("line", gone(9n, "c6"));
  await scene.answer(listing(9n, "a3", "b5"));
  scene.line.look();
  await scene.answer(listing(4n, "a3"));
  const waiter = scene.wait("d6", 6n, listing(6n, "a3", "d6"));
  expect(scene.taken()).toEqual([
    "watch line from 5",
    "look 9",
    "look now",
    "unwatch line",
    "look now",
    "b5 missing",
    "watch line from 6",
  ]);
  scene.line.remove(waiter);
  scene.line.close();
});
