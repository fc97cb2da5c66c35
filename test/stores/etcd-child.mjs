// Opens a store in a process of the conformance kit; closing it closes its client.
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

/** @param {string} url */
export const openStore = (url) => openEtcdStore(new URL(url));
