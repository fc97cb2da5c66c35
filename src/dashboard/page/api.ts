import type { FailureAnswer } from "../message.js";

const STORED = "holdfast-dashboard-token";
const FRAGMENT = /^#token=([\w-]+)$/;

/** The answer to a request was no; `message` says why. */
export class RefusedError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Takes the token out of the address, so that it is in no bookmark and no screenshot. It stays in
 * this tab until the tab is closed.
 */
export function takeToken(): void {
  const token = FRAGMENT.exec(location.hash)?.[1];
  if (token === undefined) return;
  sessionStorage.setItem(STORED, token);
  history.replaceState(null, "", "#/");
}

/** Asks the dashboard. Rejects with `RefusedError` where it says no. */
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  headers.set("x-holdfast-dashboard", "1");
  const token = sessionStorage.getItem(STORED);
  if (token !== null) headers.set("authorization", `Bearer ${token}`);
  const response = await fetch(`api/${path}`, { ...options, headers });
  if (response.ok) return response;
  throw new RefusedError(response.status, await problemOf(response));
}

async function problemOf(response: Response): Promise<string> {
  try {
    return ((await response.json()) as FailureAnswer).error;
  } catch {
    return `The dashboard answered with status ${response.status}.`;
  }
}
