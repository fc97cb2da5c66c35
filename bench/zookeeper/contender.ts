import { type Turns, takeTurns } from "../turns.js";
import { candidate } from "./candidates.js";

export interface Order extends Turns {
  readonly candidate: string;
  readonly port: number;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const locker = await candidate(order.candidate).open(order.port);
// Connects, and opens its session.
await (await locker.acquire(`${order.candidate} of ${process.pid}`))();
await takeTurns(locker, order);
