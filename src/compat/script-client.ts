import { invalidValue } from "../errors/index.js";
import { type Ioredis, isOldIoredis } from "../stores/redis-client/ioredis.js";
import type { NodeRedis } from "../stores/redis-client/node-redis.js";
import { type Script, type SendCommand, scriptRunner } from "../stores/redis-client/plain-keys.js";
import {
  describeClient,
  driverOf,
  isClient,
  SUPPORTED_CLIENTS,
} from "../stores/redis-client/supported-clients.js";

/** A client with the methods of ioredis for scripts, such as ioredis 4. */
export interface CommandClient {
  /** Runs a script by its text. */
  eval(...args: never[]): unknown;
  /** Runs a script by its hash. */
  evalsha(...args: never[]): unknown;
}

/** A client that can run a script. */
export type ScriptClient = Ioredis | NodeRedis | CommandClient;

/** Runs scripts by one client. */
export interface ScriptDriver {
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** How often the connection has changed, and the client may have sent a request again. */
  changes(): number;
}

/** Throws where the client cannot run a script. */
export function scriptDriver(client: unknown): ScriptDriver {
  if (isClient(client) && !hasOldMethods(client)) {
    const driver = driverOf(client);
    return { run: scriptRunner(driver.send, driver.changes, true), changes: driver.changes };
  }
  if (!hasMethods(client)) {
    const rule = `must be of ${SUPPORTED_CLIENTS}, or have the methods eval and evalsha of ioredis`;
    throw invalidValue("client", describeClient(client), rule);
  }
  const changes = (): number => 0;
  const hasSet = typeof (client as Partial<Commands>).set === "function";
  return { run: scriptRunner(sendBy(client), changes, hasSet), changes };
}

interface Commands {
  eval(...args: readonly unknown[]): unknown;
  evalsha(...args: readonly unknown[]): unknown;
  set(...args: readonly unknown[]): unknown;
}

function sendBy(client: CommandClient): SendCommand {
  const commands = client as unknown as Commands;
  // The client of `redis` up to version 3 gives its answers to a callback alone.
  if ("internal_send_command" in client) {
    return (_key, command, args) =>
      new Promise((resolve, reject) => {
        const onAnswer = (error: unknown, answer: unknown): void =>
          error ? reject(error) : resolve(answer);
        commands[command](...args, onAnswer);
      });
  }
  return async (_key, command, args) => await commands[command](...args);
}

function hasMethods(client: unknown): client is CommandClient {
  if (typeof client !== "object" || client === null) return false;
  const { eval: byText, evalsha } = client as Partial<CommandClient>;
  return typeof byText === "function" && typeof evalsha === "function";
}

/** ioredis up to 4 and `redis` up to 3: a store refuses them, but they can run scripts. */
function hasOldMethods(client: unknown): boolean {
  return hasMethods(client) && (isOldIoredis(client) || "internal_send_command" in client);
}
