// Opens the Redis store of the build by URL in a child process of the conformance kit.
import { openRedisStore } from "../../dist/stores/redis/index.js";

/** @param {string} url */
export function openStore(url) {
  return openRedisStore(new URL(url));
}
