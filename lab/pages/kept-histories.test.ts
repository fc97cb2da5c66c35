import { expect, it } from "vitest";
import type { Entry } from "../history.js";
import { withoutRepeats } from "./kept-histories.js";

const asks = (atMs: number, lane: string): Entry => ({ atMs, type: "asks", lane });
const refused = (atMs: number, lane: string, why: string): Entry => {
  return { atMs, type: "refused", lane, why };
};

it("keeps one refusal of each reason, and the request that is answered", () => {
  const entries: readonly Entry[] = [
    asks(1, "B"),
    refused(2, "B", "no server"),
    asks(3, "B"),
    asks(4, "C"),
    refused(5, "B", "no server"),
    refused(6, "C", "no server"),
    asks(7, "B"),
    refused(8, "B", "breaker is open"),
    asks(9, "B"),
    { atMs: 10, type: "believes", lane: "B" },
  ];
  expect(withoutRepeats(entries).map(({ atMs }) => atMs)).toEqual([1, 2, 4, 6, 7, 8, 9, 10]);
});
