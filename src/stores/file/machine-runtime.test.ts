import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { UnsupportedError } from "../../errors/index.js";
import { assertMachineClock, machineRuntime } from "./machine-runtime.js";

it("has a clock that other processes share, in Node", () => {
  expect(() => assertMachineClock()).not.toThrow();

  const program = "const [s, n] = process.hrtime(); console.log(s * 1000 + n / 1e6);";
  const beforeMs = machineRuntime.clock.nowMs();
  const thereMs = Number(execFileSync(process.execPath, ["-e", program], { encoding: "utf8" }));
  expect(thereMs).toBeGreaterThan(beforeMs);
  expect(thereMs).toBeLessThan(machineRuntime.clock.nowMs());
});

it("refuses a clock that begins with the process, however old it is", () => {
  for (const ageMs of [50, 5_000, 3_600_000]) {
    expect(() => assertMachineClock(ageMs + 3, ageMs)).toThrow(UnsupportedError);
    expect(() => assertMachineClock(ageMs + 500, ageMs)).not.toThrow();
  }
});
