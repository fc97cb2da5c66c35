import { expect, it } from "vitest";
import { testingPage } from "./fixtures/testing-page.js";

it("has docs/testing.md as the code and the kept histories give it", async () => {
  // After a change: npx vitest run --project=unit test/testing-page.test.ts --update
  await expect(testingPage()).toMatchFileSnapshot("../docs/testing.md");
});
