import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../../../test/fixtures/property.js";
import { Unreadable } from "../../../events/foreign-data.js";
import { FrameSplitter, JuteReader, JuteWriter } from "./jute.js";

const bytes = fc.uint8Array({ maxLength: 600 }).map((array) => Buffer.from(array));
const text = fc.string({ unit: "grapheme", maxLength: 300 });

describe("values", () => {
  it("are read as they were written", () => {
    const number = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
    const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const record = fc.tuple(number, long, fc.boolean(), text, bytes, fc.array(text));
    check(
      fc.property(record, ([int, big, flag, word, data, words]) => {
        const writer = new JuteWriter("");
        writer.int(int).long(big).bool(flag).text(word).buffer(data);
        const frame = writer.list(words, (one) => writer.text(one)).frame();
        expect(frame.readInt32BE(0)).toBe(frame.length - 4);
        const reader = new JuteReader(frame.subarray(4), "");
        const read = [reader.int(), reader.long(), reader.bool(), reader.text(), reader.buffer()];
        expect(read).toEqual([int, big, flag, word, data]);
        expect(reader.list(() => reader.text())).toEqual(words);
        expect(reader.isAtEnd).toBe(true);
      }),
    );
  });

  it("of any other bytes are read or refused, and take no more memory than the bytes", () => {
    const kinds = ["int", "long", "bool", "text", "buffer", "path"] as const;
    const step = fc.constantFrom(...kinds, "list");
    check(
      fc.property(bytes, fc.array(step, { maxLength: 20 }), (input, steps) => {
        const reader = new JuteReader(input, "/app");
        try {
          for (const one of steps) {
            if (one === "list") expect(reader.list(() => reader.int()).length).toBeLessThan(600);
            else reader[one]();
          }
        } catch (error) {
          expect(error).toBeInstanceOf(Unreadable);
        }
      }),
      2_000,
    );
  });
});

describe("paths", () => {
  it.each([
    ["", "/", "/"],
    ["", "/a/b", "/a/b"],
    ["/app", "/", "/app"],
    ["/app", "/a/b", "/app/a/b"],
  ])("below the chroot %j: %s is %s for the server", (chroot, path, whole) => {
    const frame = new JuteWriter(chroot).path(path).frame();
    expect(new JuteReader(frame.subarray(4), "").text()).toBe(whole);
    expect(new JuteReader(frame.subarray(4), chroot).path()).toBe(path);
  });

  it.each(["/", "/apple", "/ap", "app/x"])("outside of the chroot are refused: %s", (path) => {
    const frame = new JuteWriter("").text(path).frame();
    expect(() => new JuteReader(frame.subarray(4), "/app").path()).toThrow(Unreadable);
  });
});

describe("frames", () => {
  it("are the same, however the stream is cut", () => {
    const frames = fc.array(bytes, { maxLength: 8 });
    check(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 })), (given, sizes) => {
        const stream = Buffer.concat(
          given.map((frame) => {
            const size = Buffer.alloc(4);
            size.writeInt32BE(frame.length);
            return Buffer.concat([size, frame]);
          }),
        );
        const splitter = new FrameSplitter(600);
        const read: Buffer[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const size = sizes[turn % Math.max(1, sizes.length)] ?? stream.length;
          read.push(...[...splitter.push(stream.subarray(at, at + size))].map(Buffer.from));
          at += size;
        }
        expect(read).toEqual(given);
        expect(splitter.isInside).toBe(false);
      }),
      300,
    );
  });

  it.each([-1, 601, 2 ** 31 - 1, -(2 ** 31)])("of the size %d are refused", (size) => {
    const start = Buffer.alloc(4);
    start.writeInt32BE(size);
    expect(() => [...new FrameSplitter(600).push(start)]).toThrow(Unreadable);
  });
});
