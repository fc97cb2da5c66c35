// Answers every message with a number that rises; ends, or throws, when told to.

let answered = 0;

process.on("message", (message) => {
  if (message.exit !== undefined) process.exit(message.exit);
  if (message.fail !== undefined) throw new Error(message.fail);
  answered += 1;
  process.send({ answered, message, args: process.argv.slice(2) });
});
process.send({ ready: true });
