import { describe, expect, it } from "vitest";
import { Holdfast } from "../api/holdfast.js";
import { LeaseLostError } from "../errors/index.js";
import { memoryStore } from "../stores/memory/index.js";
import { type AuditLine, revokeAudited } from "./revocation.js";

const now = (): Date => new Date("2026-11-17T03:00:00Z");

function orderFor(token: bigint) {
  return { space: "lock", name: "deploy", token: `${token}`, reason: "host is gone" } as const;
}

describe("a revocation", () => {
  it("has a line before it and one after it, and tells the holder why and by whom", async () => {
    await using locks = new Holdfast(memoryStore());
    const lease = await locks.mutex("deploy").acquire();
    const lines: AuditLine[] = [];
    const states: number[] = [];
    const tell = async (line: AuditLine): Promise<void> => {
      lines.push(line);
      states.push((await locks.inspect("deploy")).holders.length);
    };
    const answer = await revokeAudited(locks, orderFor(lease.token), "mira", tell, now);
    expect(answer).toEqual({ outcome: "revoked", isAudited: true });
    const line = { at: "2026-11-17T03:00:00.000Z", actor: "mira", action: "revoke" };
    expect(lines).toEqual([
      { ...line, ...orderFor(lease.token), outcome: "asked" },
      { ...line, ...orderFor(lease.token), outcome: "revoked" },
    ]);
    expect(states).toEqual([1, 0]);
    await lease.renew().catch(() => {});
    const { reason } = lease.signal;
    expect(reason).toBeInstanceOf(LeaseLostError);
    expect((reason as LeaseLostError).message).toContain("host is gone (by mira)");
  });

  it("of a lease that is over says so", async () => {
    await using locks = new Holdfast(memoryStore());
    const lines: AuditLine[] = [];
    const tell = (line: AuditLine): void => void lines.push(line);
    const answer = await revokeAudited(locks, orderFor(17n), "mira", tell, now);
    expect(answer.outcome).toBe("not_held");
    expect(lines.map(({ outcome }) => outcome)).toEqual(["asked", "not_held"]);
  });

  it("does not happen where the audit takes no line", async () => {
    await using locks = new Holdfast(memoryStore());
    const lease = await locks.mutex("deploy").acquire();
    const refuse = (): never => {
      throw new Error("disk full");
    };
    const asked = revokeAudited(locks, orderFor(lease.token), "mira", refuse, now);
    await expect(asked).rejects.toThrow("nothing was revoked");
    expect((await locks.inspect("deploy")).holders).toHaveLength(1);
  });

  it("whose second line is not taken says so", async () => {
    await using locks = new Holdfast(memoryStore());
    const lease = await locks.mutex("deploy").acquire();
    let lines = 0;
    const tell = (): void => {
      lines += 1;
      if (lines === 2) throw new Error("disk full");
    };
    const answer = await revokeAudited(locks, orderFor(lease.token), "mira", tell, now);
    expect(answer).toEqual({ outcome: "revoked", isAudited: false });
  });

  it("that the store does not answer is told to the audit as failed", async () => {
    const locks = new Holdfast(memoryStore());
    await locks.close();
    const lines: AuditLine[] = [];
    const tell = (line: AuditLine): void => void lines.push(line);
    await expect(revokeAudited(locks, orderFor(1n), "mira", tell, now)).rejects.toThrow();
    expect(lines.map(({ outcome }) => outcome)).toEqual(["asked", "failed"]);
  });
});
