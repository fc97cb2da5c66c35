import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The wall clock of a server, to be set while it runs. */
export interface ShiftedClock {
  /** For the environment of the server. */
  readonly env: Readonly<Record<string, string>>;
  shift(byMs: number): void;
}

/** Clocks that can be shifted; null where there is no C compiler, or no way to preload. */
export function makeClocks(): { clock(name: string): ShiftedClock; end(): void } | null {
  if (process.platform !== "linux") return null;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-clock-"));
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
      const shift = (byMs: number): void => {
        const bytes = Buffer.alloc(8);
        bytes.writeBigInt64LE(BigInt(byMs) * 1000n);
        // In place: the server has the file mapped.
        writeFileSync(file, bytes, { flag: "r+" });
      };
      writeFileSync(file, Buffer.alloc(8));
      return { env: { LD_PRELOAD: library, CLOCK_SHIFT_FILE: file }, shift };
    },
    end,
  };
}
