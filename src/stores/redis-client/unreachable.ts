import { unreachable } from "../unreachable.js";
import type { Driver } from "./driver.js";

const looks = new WeakMap<Driver, Promise<Error | null>>();

/** Why no server of a client can be reached. Calls that fail together share one connection. */
export function whyUnreachable(driver: Driver): Promise<Error | null> {
  const under = looks.get(driver);
  if (under) return under;
  const look = unreachable(driver.servers()).finally(() => looks.delete(driver));
  looks.set(driver, look);
  return look;
}
