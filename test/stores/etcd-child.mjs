// Opens a store in a child process of the conformance kit. Closing it closes its client.
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

/** @param {string} url */
export const openStore = (url) => openEtcdStore(new URL(url));
