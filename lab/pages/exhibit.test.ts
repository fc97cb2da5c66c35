import { expect, it } from "vitest";
import type { VerdictKind } from "../history.js";
import { type Exhibit, exhibitOf } from "./exhibit.js";

const rung = (id: string) =>
  ({ id, title: id, family: "ladder", program: `lab/ladder/${id}.ts` }) as const;
const store = (id: string) => ({ id, title: `Store ${id}`, family: "holdfast" }) as const;

const ROWS = [
  rung("rung-2"),
  rung("rung-3"),
  rung("rung-4"),
  rung("rung-6b"),
  store("holdfast-redis"),
  store("holdfast-redlock"),
];

function exhibit(subject: string, fault: string, kind: VerdictKind, rows = ROWS): Exhibit {
  const cells = rows.map((row) => ({ subject: row, fault: { id: fault } }));
  return exhibitOf({ subject, fault, verdict: { kind, text: "" } }, cells, (path) => `// ${path}`);
}

it("has the program, and the next rung that holds against the fault", () => {
  const { program, cure, store: beyond } = exhibit("rung-2", "lost-reply", "stuck");
  expect(program).toEqual({ path: "lab/ladder/rung-2.ts", source: "// lab/ladder/rung-2.ts" });
  expect(cure?.path).toBe("lab/ladder/rung-4.ts");
  expect(beyond).toBeUndefined();
});

it("names the store that holds where no rung does", () => {
  const { cure, store: beyond } = exhibit("rung-3", "restarts-empty", "two held");
  expect(cure).toBeUndefined();
  expect(beyond).toEqual({
    title: "Store holdfast-redlock",
    command: "npm run lab -- holdfast-redlock restarts-empty",
  });
});

it("has no cure for a rung that held, and no rung that the fault cannot happen to", () => {
  expect(Object.keys(exhibit("rung-4", "lost-reply", "held"))).toEqual(["program"]);
  const rows = ROWS.filter(({ id }) => id !== "rung-4");
  expect(exhibit("rung-3", "lost-reply", "stuck", rows).cure?.path).toBe("lab/ladder/rung-6b.ts");
});

it("is empty for a store", () => {
  expect(exhibit("holdfast-redis", "failover", "told late")).toEqual({});
});
