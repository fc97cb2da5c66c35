/** The checks of arguments, with the messages of redis-semaphore. */
import type { ScriptClient } from "../script-client.js";

export function clientOf(client: ScriptClient): ScriptClient {
  if (!client) throw new Error('"client" is required');
  return client;
}

export function clientsOf(clients: ScriptClient[]): ScriptClient[] {
  if (!Array.isArray(clients)) throw new Error('"clients" array is required');
  if (clients.length === 0) throw new Error('"clients" must have at least one client');
  return clients;
}

export function keyOf(key: string): string {
  if (!key) throw new Error('"key" is required');
  if (typeof key !== "string") throw new Error('"key" must be a string');
  return key;
}

export function countOf(argument: "limit" | "permits", value: number): number {
  if (!value) throw new Error(`"${argument}" is required`);
  if (typeof value !== "number") throw new Error(`"${argument}" must be a number`);
  return value;
}
