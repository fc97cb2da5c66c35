// Preloaded by a process and, as threads inherit it, by the thread of its stores: breaks the thread
// when the process says so.
const { Socket } = require("node:net");
const { BroadcastChannel, isMainThread } = require("node:worker_threads");

if (!isMainThread) {
  const channel = new BroadcastChannel("thread-hook");
  let brokenPort = 0;
  let isDeaf = false;
  channel.onmessage = ({ data }) => {
    if (data.exitCode !== undefined) process.exit(data.exitCode);
    if (data.isStuck) for (;;);
    // In no store's work.
    if (data.isFatal) throw new Error("a fault of unknown origin");
    brokenPort = data.brokenPort ?? 0;
    isDeaf = data.isDeaf ?? false;
  };
  channel.unref();

  const { emit } = Socket.prototype;
  Socket.prototype.emit = function (name, ...args) {
    if (name === "data" && this.remotePort === brokenPort) throw new RangeError("out of range");
    if (name === "data" && isDeaf) return false;
    return emit.call(this, name, ...args);
  };
}
