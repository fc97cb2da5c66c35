import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "./deployment.js";
import { LaneLinks } from "./lane-links.js";
import { redisWire } from "./wire.js";

/** A folder of this machine: it has no network and no server that could fail. */
export class FolderDeployment implements Deployment {
  readonly versions = {};
  readonly succession = "";
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-lab-"));

  links(): LaneLinks {
    return new LaneLinks([], redisWire);
  }

  readTruth(): Promise<string | null> {
    return Promise.reject(new Error("the subject reads its folder itself"));
  }

  isEndless(): Promise<boolean> {
    return Promise.resolve(false);
  }

  laneOf(): string | null {
    return null;
  }

  bareMajority(): void {}

  async restartEmpty(): Promise<void> {
    const files = readdirSync(this.folder);
    for (const file of files) rmSync(join(this.folder, file), { recursive: true, force: true });
  }

  shiftClock(): Promise<void> {
    return noServer();
  }

  cutReplicas(): void {}

  failOver(): Promise<void> {
    return noServer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function noServer(): Promise<void> {
  return Promise.reject(new Error("a folder has no server"));
}
