// Opens a transaction on the lock file of its first argument and keeps it open until a message.
import Database from "libsql";

const database = new Database(process.argv[2] ?? "");
database.exec("BEGIN IMMEDIATE");
process.send?.("in");
process.once("message", () => {
  database.exec("ROLLBACK");
  process.exit();
});
