import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { Heap, type HeapItem } from "./heap.js";

interface Item extends HeapItem {
  rank: number;
}

const isBefore = (a: Item, b: Item): boolean => a.rank < b.rank;
const makeItem = (rank: number): Item => ({ rank, heapIndex: -1 });

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
      }),
      300,
    );
  });

  it("gives everything back in order", () => {
    check(
      fc.property(fc.array(fc.integer()), (ranks) => {
        const heap = new Heap<Item>(isBefore);
        for (const rank of ranks) heap.push(makeItem(rank));
        const drained: number[] = [];
        for (let top = heap.peek(); top; top = heap.peek()) {
          drained.push(top.rank);
          heap.remove(top);
        }
        expect(drained).toEqual([...ranks].sort((a, b) => a - b));
      }),
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
