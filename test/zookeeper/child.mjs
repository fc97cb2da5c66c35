// Opens a store in a child process of the conformance kit.
import { openZookeeperStore } from "../../dist/stores/zookeeper/index.js";

/** @param {string} url */
export const openStore = (url) => openZookeeperStore(new URL(url));
