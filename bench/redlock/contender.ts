import { type Turns, takeTurns } from "../turns.js";
import { open } from "./candidates.js";

export interface Order extends Turns {
  readonly candidate: string;
  readonly ports: readonly number[];
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
await takeTurns(open(order.candidate, order.ports), order);
