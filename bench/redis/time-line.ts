/**
 * The time line of a handoff between two processes, run by hand after a run of `npm run bench`:
 * `node bench/build/bench/redis/time-line.js [SECONDS]`. It shows the median of each step beside
 * the same step of a raw PUBLISH. All times are of the monotonic clock, which the processes of a
 * machine share. The server tells its time in the push; `wallLeadUs` converts it.
 */
import { once } from "node:events";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { quantile } from "../contest.js";
import { endWithParent, forked } from "../forked.js";
import { holdfast } from "./candidates.js";
import { BenchRedis } from "./server.js";

type Step = "called" | "write" | "written" | "script" | "data" | "running";
type Stamp = readonly [step: Step, atUs: number, letter: string];
type Role = "locker" | "publisher" | "listener";

const PAUSE_MS = 15;
const HOLD_MS = 25;
const ORDER: readonly string[] = [
  "called > write r",
  "write r > written r",
  "written r > script g",
  "script g > data g",
  "written r > data g",
  "data g > write c",
  "write c > written c",
  "written c > running",
  "data g > running",
  "called > running",
];

const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;
const stamps: Stamp[] = [];
const stamp = (step: Step, letter = ""): void => void stamps.push([step, nowUs(), letter]);

if (process.send) await takePart();
else await tell(Number(process.argv[2] ?? 6));

/** How far the wall clock is ahead of the monotonic one, to about a microsecond. */
function wallLeadUs(): number {
  let [bestUs, leadUs] = [Number.POSITIVE_INFINITY, 0];
  for (let round = 0; round < 20; round += 1) {
    const startMs = Date.now();
    let [beforeUs, wallMs] = [nowUs(), startMs];
    while (wallMs === startMs) [beforeUs, wallMs] = [nowUs(), Date.now()];
    const afterUs = nowUs();
    if (afterUs - beforeUs >= bestUs) continue;
    bestUs = afterUs - beforeUs;
    leadUs = wallMs * 1000 - (beforeUs + afterUs) / 2;
  }
  return leadUs;
}

/** Notes every write of a command and every push. A raw message counts as a release and a push. */
function watchSockets(leadUs: number): void {
  const { write, prependListener } = Socket.prototype;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    const letter = /\r\n([rc])[0-9a-f]{32} \r\n$/.exec(String(args[0]))?.[1];
    const isRaw = letter === undefined && String(args[0]).includes("\r\nraw\r\n");
    if (letter === undefined && !isRaw) return write.apply(this, args as never);
    stamp("write", letter ?? "r");
    const isDone = write.apply(this, args as never);
    stamp("written", letter ?? "r");
    return isDone;
  } as typeof write;
  // The clients hear their data by this method.
  Socket.prototype.prependListener = function (this: Socket, ...args: unknown[]): Socket {
    const [event, hear] = args as [string, (this: Socket, data: Buffer) => void];
    if (event !== "data") return prependListener.apply(this, args as never);
    const heard = function (this: Socket, data: Buffer): void {
      const text = data.toString("latin1");
      const [, grantedUs] = /\r\ng\S+ \d+ \d+ (\d+) \d+ /.exec(text) ?? [];
      if (grantedUs !== undefined) stamps.push(["script", Number(grantedUs) - leadUs, "g"]);
      if (grantedUs !== undefined || text.includes("\r\nraw\r\n")) stamp("data", "g");
      hear.call(this, data);
    };
    return prependListener.apply(this, [event, heard] as never);
  } as typeof prependListener;
}

async function takePart(): Promise<void> {
  const { role, port, forMs } = JSON.parse(process.argv[2] ?? "{}");
  endWithParent();
  watchSockets(wallLeadUs());
  const client = new Redis(port);
  const locker = await holdfast("time line").open(port);
  if (role === "listener") {
    client.on("message", () => stamp("running"));
    await client.subscribe("raw");
  }
  process.send?.("ready");
  await once(process, "message");
  const untilUs = nowUs() + forMs * 1000;
  if (role === "listener") await sleep(forMs + 100);
  while (role === "publisher" && nowUs() < untilUs) {
    await sleep(HOLD_MS);
    stamp("called");
    await client.publish("raw", "x");
  }
  while (role === "locker" && nowUs() < untilUs) {
    const release = await locker.acquire("time line");
    stamp("running");
    await sleep(HOLD_MS);
    stamp("called");
    await release();
    await sleep(PAUSE_MS);
  }
  await locker.close();
  client.disconnect();
  process.send?.(stamps, () => process.disconnect());
}

async function tell(seconds: number): Promise<void> {
  const redis = new BenchRedis();
  const port = await redis.start();
  const raw = await stepsOf(["publisher", "listener"], port, seconds * 1000);
  const ours = await stepsOf(["locker", "locker"], port, seconds * 1000);
  console.log("µs p50".padEnd(24), "holdfast".padStart(10), "PUBLISH".padStart(10));
  for (const step of ORDER) {
    const figures = [ours, raw].map((steps) => {
      const tookUs = steps.get(step);
      return (tookUs ? quantile(tookUs, 0.5).toFixed(0) : "").padStart(10);
    });
    console.log(step.padEnd(24), ...figures);
  }
  await redis.stop();
}

/** How long each step took, in each handoff from one process to the other. */
async function stepsOf(roles: readonly Role[], port: number, forMs: number) {
  const program = new URL(import.meta.url);
  const children = roles.map((role) => forked(program, { role, port, forMs }));
  await Promise.all(children.map((child) => once(child, "message")));
  const reports = children.map((child) => once(child, "message"));
  for (const child of children) child.send("go");
  const told = (await Promise.all(reports)).map(([report]) => report as Stamp[]);
  const all = told.flatMap((own, child) => own.map((one) => ({ one, child })));
  all.sort((a, b) => a.one[1] - b.one[1]);
  const steps = new Map<string, number[]>();
  let line = new Map<string, number>();
  let from = -1;
  for (const { one, child } of all) {
    const [step, atUs, letter] = one;
    if (step === "called") [line, from] = [new Map(), child];
    const label = `${step} ${letter}`.trim();
    const isReleaser = step === "called" || letter === "r";
    if (isReleaser === (child === from) && !line.has(label)) line.set(label, atUs);
    if (step !== "running" || !line.has("data g")) continue;
    for (const pair of ORDER) {
      const [beginUs, endUs] = pair.split(" > ").map((name) => line.get(name) ?? Number.NaN);
      const tookUs = (endUs ?? Number.NaN) - (beginUs ?? Number.NaN);
      if (!Number.isNaN(tookUs)) steps.set(pair, [...(steps.get(pair) ?? []), tookUs]);
    }
    line = new Map();
  }
  return steps;
}
