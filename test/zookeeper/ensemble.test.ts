/** The conformance kit on three servers. It takes a minute, so it is part of the full run. */

import { afterAll, beforeAll, describe } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { startZookeeperEnsemble, type ZookeeperEnsemble } from "../servers/zookeeper.js";
import { runConformance } from "../stores/run-conformance.js";
import { zookeeperHarness } from "./harness.js";

describe.skipIf(!isFull)("three servers", () => {
  let ensemble: ZookeeperEnsemble;
  beforeAll(async () => {
    ensemble = await startZookeeperEnsemble(3, {
      tickMs: 200,
      minSessionMs: 100,
      maxSessionMs: 120_000,
    });
  }, 60_000);
  afterAll(() => ensemble[Symbol.asyncDispose]());

  runConformance(zookeeperHarness(() => ensemble.members));
});
