import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitUntil } from "./wait-until.js";

/** Below the difference of two shifts, and far above the time that a server caches its clock. */
const NEAR_MS = 10;

/** A server that tells the time. */
interface Timed {
  clockMs(): Promise<number>;
}

/** The wall clock of a server, which a test shifts while the server runs. */
export interface ShiftedClock {
  /** The environment variables of the server. */
  readonly env: Readonly<Record<string, string>>;
  /** Shifts the clock, and does not ask whether the server has noticed. */
  set(byMs: number): void;
  /**
   * Resolves when the server returns the shifted time. Valkey 9.1 reads the wall clock once in a
   * millisecond and adds its monotonic clock in between, so it returns the old time for a while.
   */
  shift(byMs: number, server: Timed): Promise<void>;
}

/** Clocks that can be shifted; null without a C compiler or LD_PRELOAD. */
export function makeClocks(): { clock(name: string): ShiftedClock; end(): void } | null {
  if (process.platform !== "linux") return null;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-clock-"));
  // A server may run as another user.
  chmodSync(folder, 0o755);
  const library = join(folder, "clock-shift.so");
  const source = fileURLToPath(new URL("./clock-shift.c", import.meta.url));
  const end = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const args = ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"];
    execFileSync("cc", args, { stdio: "pipe" });
  } catch {
    end();
    return null;
  }
  return {
    clock(name) {
      const file = join(folder, name);
      const set = (byMs: number): void => {
        const bytes = Buffer.alloc(8);
        bytes.writeBigInt64LE(BigInt(byMs) * 1000n);
        // Written in place: the server has mapped the file.
        writeFileSync(file, bytes, { flag: "r+" });
      };
      const shift = async (byMs: number, server: Timed): Promise<void> => {
        set(byMs);
        const isTold = async (): Promise<boolean> => {
          // A busy machine takes its time for the answer: the server read its clock in between.
          const askedMs = Date.now() + byMs;
          const toldMs = await server.clockMs();
          return toldMs > askedMs - NEAR_MS && toldMs < Date.now() + byMs + NEAR_MS;
        };
        await waitUntil(isTold, { what: `a clock that is shifted by ${byMs} ms` });
      };
      writeFileSync(file, Buffer.alloc(8));
      return { env: { LD_PRELOAD: library, CLOCK_SHIFT_FILE: file }, set, shift };
    },
    end,
  };
}
