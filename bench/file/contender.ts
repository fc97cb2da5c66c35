import { type Turns, takeTurns } from "../turns.js";
import { candidate } from "./candidates.js";

export interface Order extends Turns {
  readonly candidate: string;
  readonly folder: string;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
await takeTurns(candidate(order.candidate).open(order.folder), order);
