import { type Turns, takeTurns } from "../turns.js";
import { candidate } from "./candidates.js";

export interface Order extends Turns {
  readonly candidate: string;
  readonly url: string;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
await takeTurns(await candidate(order.candidate).open(order.url), order);
