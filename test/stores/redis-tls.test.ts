import { describe } from "vitest";
import { tryTls } from "./redis-tls-trial.js";

describe("TLS with ioredis", tryTls);
