import type { LockDetail, RevokeAnswer, RevokeRequest } from "../message.js";
import { ask } from "./api.js";
import { type Element, html, useEffect, useRef, useState } from "./preact.js";
import { foreign, visible } from "./text.js";

export interface RevokeState {
  readonly lock: Pick<LockDetail, "space" | "name">;
  readonly token: string;
  readonly actor: string;
  /** The lease with this token still holds the lock. */
  readonly isCurrent: boolean;
  readonly announce: (news: string) => void;
  readonly onClose: () => void;
}

const NEWS: Readonly<Record<RevokeAnswer["outcome"], string>> = {
  revoked: "The lease was revoked.",
  not_held: "Nothing was revoked: that lease had already ended.",
};

/** Asks for the name and the reason before a lease is revoked. */
export function RevokeDialog(state: RevokeState): Element {
  const { lock, token, actor, isCurrent, announce, onClose } = state;
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const dialog = useRef<HTMLDialogElement | null>(null);
  const wanted = visible(lock.name);
  const isReady = typed === wanted && reason.trim() !== "" && !isBusy;

  useEffect(() => {
    dialog.current?.showModal();
    return;
  }, []);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    setBusy(true);
    setProblem("");
    try {
      const { space, name } = lock;
      const body = JSON.stringify({ space, name, token, reason } satisfies RevokeRequest);
      const headers = { "content-type": "application/json" };
      const response = await ask("revoke", { method: "POST", headers, body });
      const { outcome, isAudited } = (await response.json()) as RevokeAnswer;
      announce(NEWS[outcome] + (isAudited ? "" : " The audit did not take its outcome."));
      onClose();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };

  return html`<dialog ref=${dialog} aria-labelledby="revoke-title" onClose=${onClose}>
    <form onSubmit=${submit}>
      <h2 id="revoke-title">Revoke a lease</h2>
      <p>
        The lock ${foreign(lock.name)} is free at once. Its holder learns of it at its next
        renewal: until then <strong>both may work</strong>, unless the resource checks tokens.
      </p>
      ${!isCurrent && html`<p class="tag warn">That lease (token ${token}) has already ended.</p>`}
      <label for="typed">Type the name of the lock to confirm</label>
      <input id="typed" autocomplete="off" spellcheck=${false} value=${typed} required
        onInput=${(event: Event) => setTyped((event.target as HTMLInputElement).value)} />
      <label for="reason">Reason</label>
      <textarea id="reason" rows="3" maxlength="900" required aria-describedby="reason-note"
        value=${reason} onInput=${(event: Event) => {
          setReason((event.target as HTMLTextAreaElement).value);
        }}></textarea>
      <p id="reason-note" class="note">
        The holder reads the reason and who gave it: ${foreign(actor)}. Both go into the audit.
      </p>
      ${problem !== "" && html`<p class="problem bad-text" role="alert">${foreign(problem)}</p>`}
      <div class="choices">
        <button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        <button type="submit" class="danger" disabled=${!isReady}>Revoke token ${token}</button>
      </div>
    </form>
  </dialog>`;
}
