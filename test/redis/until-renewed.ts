import type { Lease } from "../../src/lease/lease.js";
import { waitUntil } from "../servers/wait-until.js";

/** Resolves when a renewal of the holder has prolonged the lease; throws if the lease is lost. */
export async function untilRenewed(lease: Lease): Promise<void> {
  const deadlineMs = (): number => performance.now() + lease.remainingMs();
  const beforeMs = deadlineMs();
  await waitUntil(() => lease.state !== "held" || deadlineMs() > beforeMs + 1, {
    what: "the lease is renewed",
  });
  lease.assertHeld();
}
