import { describe, vi } from "vitest";
import { tryTls } from "./tls-trial.js";

vi.mock("ioredis", () => {
  throw new Error("not installed");
});

describe.concurrent("TLS with node-redis", tryTls);
