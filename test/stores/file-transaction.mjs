// Opens a transaction on the lock file of its first argument and stays in it until it is told to
// end it.
import { openSqlite } from "../../dist/stores/file/sqlite.js";

const database = openSqlite(process.argv[2] ?? "");
database.exec("BEGIN IMMEDIATE");
process.send?.("in");
process.once("message", () => {
  database.exec("ROLLBACK");
  process.exit();
});
