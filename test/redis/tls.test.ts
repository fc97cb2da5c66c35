import { describe } from "vitest";
import { tryTls } from "./tls-trial.js";

describe.concurrent("TLS with ioredis", tryTls);
