import { expect, it } from "vitest";
import { learnSecrets, withoutSecrets } from "./secrets.js";

it.each([
  ["redis://user:s3cr3t@host:6379/0", "redis://user:***@host:6379/0"],
  ["redis://:s3cr3t@host", "redis://:***@host"],
  ["redlock://u:s3cr3t@a:1,b:2,c:3", "redlock://u:***@a:1,b:2,c:3"],
  ["redis+sentinel://u:s3cr3t@a,b/master", "redis+sentinel://u:***@a,b/master"],
  ["etcds://u:s3cr3t@a:1,b:2?ca=/ca.pem", "etcds://u:***@a:1,b:2?ca=/ca.pem"],
  ["redis://u:s3c/r3@t#1?@host", "redis://u:***@host"],
  ["redis://u:s3cr3t%zz@host", "redis://u:***@host"],
  ["redis://host?password=s3cr3t&namespace=a", "redis://host?password=***&namespace=a"],
  ["--store=REDIS://u:s3cr3t@host", "--store=REDIS://u:***@host"],
  ["redis://host:6379/0", "redis://host:6379/0"],
  ["redis://user@host", "redis://user@host"],
])("%s is shown as %s", (url, shown) => {
  expect(withoutSecrets(`Cannot use ${url} now.`)).toBe(`Cannot use ${shown} now.`);
});

it("a secret that was learnt is hidden wherever it stands, as it was written and decoded", () => {
  learnSecrets("redlock://u:top%3Asecret@a:1,b:2");
  expect(withoutSecrets("WRONGPASS for top:secret, top%3Asecret")).toBe("WRONGPASS for ***, ***");
});
