import { expect, it } from "vitest";
import { NO_TOTALS } from "./snapshot.js";
import { POINT_MS, Timeline } from "./timeline.js";

const NO_CHANGES = { grants: 0, expired: 0, late: 0 };

it("has a point for ten seconds, with the most of each state and the sum of each event", () => {
  const timeline = new Timeline();
  timeline.addLook(1_000, { ...NO_TOTALS, waiters: 3, longestWaitMs: 70 }, NO_CHANGES);
  timeline.addLook(2_000, { ...NO_TOTALS, waiters: 2 }, { grants: 4, expired: 1, late: 2 });
  timeline.addLook(9_999, NO_TOTALS, { grants: 1, expired: 1, late: 0 });
  timeline.addLoss(9_999, "expired");
  timeline.addLoss(9_999, "expired");
  timeline.addFailedRenewal(9_999);
  timeline.addRevocation(9_999);
  timeline.addLook(10_000, NO_TOTALS, NO_CHANGES);
  expect(timeline.since(0)).toEqual([
    {
      at: 0,
      waiters: 3,
      contended: 0,
      longestWaitMs: 70,
      grants: 5,
      late: 2,
      expired: 2,
      revoked: 1,
      lost: { expired: 2 },
      failedRenewals: 1,
    },
    expect.objectContaining({ at: 10_000, grants: 0, lost: {} }),
  ]);
  expect(timeline.since(10_000)).toHaveLength(1);
});

it("keeps an hour, and its order when the wall clock is set back", () => {
  const timeline = new Timeline();
  for (let at = 0; at < 2 * 3_600_000; at += POINT_MS / 2) {
    timeline.addLook(at, NO_TOTALS, NO_CHANGES);
  }
  const points = timeline.since(0);
  expect(points).toHaveLength(360);
  expect(points.at(-1)?.at).toBe(2 * 3_600_000 - POINT_MS);
  timeline.addLoss(5, "revoked");
  expect(timeline.since(0).at(-1)?.lost).toEqual({ revoked: 1 });
  expect(timeline.since(0)).toHaveLength(360);
});
