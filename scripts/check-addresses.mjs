// Before `npm publish`: refuses a manifest whose addresses are placeholders.
// The domain `invalid` is reserved: nothing can ever be found there.
import { readFileSync } from "node:fs";
import { root } from "./run.mjs";

const [, , file = `${root}package.json`] = process.argv;
const { repository, homepage, bugs } = JSON.parse(readFileSync(file, "utf8"));
const addresses = { repository: repository?.url, homepage, bugs: bugs?.url };
const unreal = Object.entries(addresses).filter(([, address]) => {
  return !URL.canParse(address) || new URL(address).hostname.endsWith(".invalid");
});
if (unreal.length > 0) {
  const names = unreal.map(([name]) => name).join(", ");
  console.error(`package.json has no real address for: ${names}. Set them before the release.`);
  process.exitCode = 1;
}
