import type { StoreError } from "../../errors/index.js";
import { storeError } from "./failure.js";

interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The attempts of a client to connect. The client repeats them until it succeeds or is closed. */
export class Connecting {
  /** Resolves when the client is connected; rejects with the failure of the first attempt. */
  readonly firstAttempt: Promise<unknown>;
  /** Resolves when the client is connected; rejects where no further attempt can help. */
  readonly connected: Promise<unknown>;
  /** The failure of the last attempt. */
  trouble: unknown;

  /** `diagnose` looks for the cause of a failure where the client reports only its effect. */
  constructor(
    store: string,
    client: Emitter,
    ready: Promise<unknown>,
    diagnose: () => Promise<unknown>,
  ) {
    let onFailure = (_failure: StoreError): void => {};
    let onRefusal = (_failure: StoreError): void => {};
    const failed = new Promise<never>((_, reject) => {
      onFailure = reject;
    });
    const refused = new Promise<never>((_, reject) => {
      onRefusal = reject;
    });
    let isDiagnosed = false;
    const settle = async (error: unknown): Promise<void> => {
      let failure = storeError(error, store);
      if (failure.retryable && !isDiagnosed) {
        isDiagnosed = true;
        const cause = await diagnose();
        if (cause) failure = storeError(cause, store);
      }
      onFailure(failure);
      if (!failure.retryable) onRefusal(failure);
    };
    client.on("error", (error) => {
      this.trouble = error;
      void settle(error);
    });
    const done = ready.then(
      () => {
        isDiagnosed = true;
      },
      (cause: unknown) => Promise.reject(storeError(cause, store)),
    );
    this.firstAttempt = Promise.race([done, failed]);
    this.connected = Promise.race([done, refused]);
    for (const promise of [this.firstAttempt, this.connected]) promise.catch(() => {});
  }
}
