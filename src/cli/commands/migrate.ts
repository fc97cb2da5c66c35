import { parseStoreUrl } from "../../stores/store-url.js";
import { UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { storeUrlOf } from "../open-cli-store.js";
import { print, tell } from "../output.js";
import { STORE_OPTIONS } from "../settings.js";

const IS_POSTGRES = /^postgres(ql)?:/;

export const migrate: Command = {
  usage: ["[OPTIONS] --store postgres://…"],
  about:
    "Prints the SQL that makes the schema of a Postgres store, or brings it up to date. With " +
    "--apply it runs the SQL, in one transaction. It can run again, and beside programs that use " +
    "the store. Programs whose role may create schemas need it only after an update of Holdfast.",
  options: {
    apply: { help: "run the SQL instead of printing it" },
    role: { value: "ROLE", help: "grant ROLE what programs need, and nothing else" },
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast migrate --role app > holdfast.sql", "SQL to review, with HOLDFAST_STORE set"],
    ["holdfast migrate --role app --apply", "run it"],
  ],

  async run(args) {
    args.none();
    const url = storeUrlOf(args);
    if (!IS_POSTGRES.test(url)) {
      throw new UsageError("Only a store in Postgres has a schema: give --store postgres://…");
    }
    const role = args.text("role");
    const options = role === undefined ? {} : { role };
    const { applyPostgresMigration, postgresMigration } = await import(
      "../../stores/postgres/index.js"
    );
    if (!args.has("apply")) {
      await print(postgresMigration(options).trimEnd().split("\n"));
      return ExitCode.ok;
    }
    await applyPostgresMigration(parseStoreUrl(url), options);
    tell("holdfast: the schema is up to date.");
    return ExitCode.ok;
  },
};
