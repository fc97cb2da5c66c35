import { describe, vi } from "vitest";
import { tryTls } from "./redis-tls-trial.js";

vi.mock("ioredis", () => {
  throw new Error("not installed");
});

describe("TLS with node-redis", tryTls);
