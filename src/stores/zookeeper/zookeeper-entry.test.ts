import { describe, expect, test } from "vitest";
import { NO_LIMIT, type Request } from "../../rules/fits.js";
import { readZnodeName, SHAPES, showsOrder, znodePrefix } from "./zookeeper-entry.js";

const ID = "0123456789abcdef0123456789abcdef";
const UUID = "01234567-89ab-cdef-0123-456789abcdef";
const exclusive: Request = { mode: "exclusive", weight: 1, limit: NO_LIMIT };
const reader: Request = { mode: "shared", weight: 1, limit: NO_LIMIT };
const permits: Request = { mode: "shared", weight: 2, limit: 5 };

describe("the name of a znode", () => {
  test("is that of the other library where the entry asks for nothing more", () => {
    expect(znodePrefix("mutex", ID, exclusive)).toBe(`_c_${UUID}-lock-`);
    expect(znodePrefix("readWrite", ID, exclusive)).toBe(`_c_${UUID}-__WRIT__`);
    expect(znodePrefix("readWrite", ID, reader)).toBe(`_c_${UUID}-__READ__`);
    expect(znodePrefix("kazoo", ID, exclusive)).toBe(`${ID}__lock__`);
    expect(znodePrefix("kazoo", ID, reader)).toBe(`${ID}__rlock__`);
  });

  test.each(SHAPES)("shows the same request to every reader, in the shape %s", (shape) => {
    for (const request of [exclusive, reader, permits, { ...exclusive, limit: 3 }]) {
      const name = `${znodePrefix(shape, ID, request)}0000000042`;
      expect(readZnodeName(name)).toEqual({ ...request, sequence: 42 });
    }
  });

  test("is read at the marker: the dash before the digits is none of the number", () => {
    expect(readZnodeName("lock-0000000001")?.sequence).toBe(1);
    expect(readZnodeName("lock--2147483648")?.sequence).toBe(-(2 ** 31));
    expect(readZnodeName("_c_x-lock--000000005")?.sequence).toBe(-5);
    expect(readZnodeName("a__lock__-__READ__0000000007")).toMatchObject({ mode: "shared" });
  });

  test("is no entry's without a marker and its digits", () => {
    for (const name of ["", "leases", "lock-", "lock-1", "n-0000000001", "lock-00000000011"]) {
      expect(readZnodeName(name), name).toBeNull();
    }
  });

  test("of an entry of another library holds alone, unless its marker is of a reader", () => {
    expect(readZnodeName("_c_b-lock-0000000001")).toMatchObject(exclusive);
    expect(readZnodeName("_c_b-__READ__0000000001")).toMatchObject(reader);
    expect(readZnodeName("b__rlock__0000000001")).toMatchObject(reader);
    // A weight of nothing is no request of ours.
    expect(readZnodeName("b.s.0.5-lock-0000000001")).toMatchObject(exclusive);
  });
});

describe("a sequence number", () => {
  test.each([
    [0, true],
    [2 ** 31 - 2, true],
    [2 ** 31 - 1, false],
    [-(2 ** 31), false],
    [-1, false],
    [9_999_999_999, false],
  ])("%d shows the place of its entry: %s", (sequence, shows) => {
    expect(showsOrder(sequence)).toBe(shows);
  });
});
