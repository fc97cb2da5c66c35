// How a process of its own opens the Redis store: from the build, by a URL, as plain node runs it.
import { openRedisStore } from "../../dist/stores/redis/index.js";

/** @param {string} url */
export function openStore(url) {
  return openRedisStore(new URL(url));
}
