// Opens the store of a URL, from the build, in a child process of the conformance kit.

// The kit expects no output, and the etcd of a test may be one that the store warns of.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "HF_ETCD_ENDS_LIVE_LEASES") console.error(warning);
});

/** @param {string} url */
export async function openStore(url) {
  const parsed = new URL(url);
  const [kind = ""] = parsed.protocol.split(/[+:]/);
  const module = await import(`../../dist/stores/${kind}/index.js`);
  return module[`open${kind.charAt(0).toUpperCase()}${kind.slice(1)}Store`](parsed);
}
