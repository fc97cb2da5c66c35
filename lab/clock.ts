/** CLOCK_MONOTONIC in milliseconds: the same clock in every process of this machine. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
