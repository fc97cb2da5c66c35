import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type AcquireOptions, Holdfast, StoreError } from "../../src/index.js";
import { openSqlite } from "../../src/stores/file/client.js";
import { fileStore } from "../../src/stores/file/index.js";
import { StoreTrial } from "../stores/trial.js";

/** A lock file in its own folder, and clients of it. */
export class FileTrial extends StoreTrial {
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  readonly path: string = join(this.folder, "locks.db");

  open(options: AcquireOptions = {}, at: string = this.path): Holdfast {
    return this.add(new Holdfast(fileStore({ path: at }), options));
  }

  /** Changes the file by SQL, like another machine or a person. */
  edit(sql: string, at: string = this.path): void {
    const database = openSqlite(at);
    database.exec(`PRAGMA busy_timeout = 1000; ${sql}`);
    database.close();
  }

  override async close(): Promise<void> {
    await super.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The StoreError that the work rejects with. */
export async function failureOf(work: Promise<unknown>): Promise<StoreError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}
