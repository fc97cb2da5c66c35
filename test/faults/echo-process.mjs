// Answers every message with a rising number. Ends or throws on demand.

let answered = 0;

process.on("message", (message) => {
  if (message.exit !== undefined) process.exit(message.exit);
  if (message.fail !== undefined) throw new Error(message.fail);
  answered += 1;
  process.send({ answered, message, args: process.argv.slice(2) });
});
process.send({ ready: true });
