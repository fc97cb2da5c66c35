import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { Heap, type HeapItem } from "./heap.js";

interface Item extends HeapItem {
  rank: number;
}

const isBefore = (a: Item, b: Item): boolean => a.rank < b.rank;
const makeItem = (rank: number): Item => ({ rank, heapIndex: -1 });

/** Takes the top off until nothing is left. */
function drain(heap: Heap<Item>): number[] {
  const ranks: number[] = [];
  for (let top = heap.peek(); top; top = heap.peek()) {
    ranks.push(top.rank);
    heap.remove(top);
  }
  return ranks;
}

const step = fc.record({
  type: fc.constantFrom("push", "push", "push", "remove", "update", "pop"),
  rank: fc.integer({ min: 0, max: 20 }),
  pick: fc.nat(100),
});

describe("Heap", () => {
  it("has the least on top, whatever was pushed, moved and removed", () => {
    check(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const heap = new Heap<Item>(isBefore);
        let items: Item[] = [];
        for (const { type, rank, pick } of steps) {
          const picked = type === "pop" ? heap.peek() : items[pick % Math.max(1, items.length)];
          if (type === "push") {
            const item = makeItem(rank);
            items.push(item);
            heap.push(item);
          } else if (picked && type === "update") {
            picked.rank = rank;
            heap.update(picked);
          } else if (picked) {
            heap.remove(picked);
            items = items.filter((item) => item !== picked);
            expect(picked.heapIndex).toBe(-1);
          }
          const least = [...items].sort((a, b) => a.rank - b.rank)[0];
          expect(heap.peek()?.rank).toBe(least?.rank);
          expect(heap.size).toBe(items.length);
          expect(new Set(heap.values())).toEqual(new Set(items));
        }
        expect(drain(heap)).toEqual(items.map((item) => item.rank).sort((a, b) => a - b));
      }),
      100,
    );
  });

  it("gives back in order what was left in it", () => {
    const entry = fc.record({ rank: fc.integer({ min: 0, max: 99 }), leaves: fc.boolean() });
    check(
      fc.property(fc.array(entry, { minLength: 20, maxLength: 40 }), (entries) => {
        const heap = new Heap<Item>(isBefore);
        const items = entries.map(({ rank, leaves }) => ({ rank, leaves, heapIndex: -1 }));
        for (const item of items) heap.push(item);
        for (const item of items) if (item.leaves) heap.remove(item);
        const left = items.filter((item) => !item.leaves).map((item) => item.rank);
        expect(drain(heap)).toEqual(left.sort((a, b) => a - b));
      }),
      400,
    );
  });

  it("leaves what is not in it alone", () => {
    const heap = new Heap<Item>(isBefore);
    const [first, second, stranger] = [makeItem(1), makeItem(2), makeItem(3)];
    heap.push(first);
    heap.push(second);
    heap.remove(stranger);
    heap.update(stranger);
    expect([...heap.values()]).toEqual([first, second]);
    heap.remove(first);
    expect(heap.peek()).toBe(second);
    expect(stranger.heapIndex).toBe(-1);
  });
});
