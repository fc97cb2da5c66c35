// Opens a transaction on the lock file of its first argument and stays in it until it is told to
// end it.
import Database from "libsql";

const database = new Database(process.argv[2] ?? "");
database.exec("BEGIN IMMEDIATE");
process.send?.("in");
process.once("message", () => {
  database.exec("ROLLBACK");
  process.exit();
});
