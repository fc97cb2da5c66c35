import fc from "fast-check";
import { it } from "vitest";
import { checkAsync } from "../../../test/fixtures/property.js";
import { expectTokensToRise, tokenAttack } from "../../../test/fixtures/token-attack.js";
import { MemorySpace } from "./index.js";

it("gives tokens that rise and are exact, whatever numbers its clients send", async () => {
  const property = fc.asyncProperty(tokenAttack, async (attack) => {
    const space = new MemorySpace();
    await expectTokensToRise(attack, (commands) => space.execute(commands));
  });
  await checkAsync(property, 200);
}, 30_000);
