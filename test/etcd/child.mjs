// Opens a store in a child process of the conformance kit. Closing it closes its client.
import { openEtcdStore } from "../../dist/stores/etcd/index.js";

// The kit expects no output, and the etcd of a test may be one that the store warns of.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "HF_ETCD_ENDS_LIVE_LEASES") console.error(warning);
});

/** @param {string} url */
export const openStore = (url) => openEtcdStore(new URL(url));
