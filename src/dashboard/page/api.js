const STORED = "holdfast-dashboard-token";
const FRAGMENT = /^#token=([\w-]+)$/;
export class RefusedError extends Error {
  status;
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
export function takeToken() {
  const token = FRAGMENT.exec(location.hash)?.[1];
  if (token === undefined) return;
  sessionStorage.setItem(STORED, token);
  history.replaceState(null, "", "#/");
}
export async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  headers.set("x-holdfast-dashboard", "1");
  const token = sessionStorage.getItem(STORED);
  if (token !== null) headers.set("authorization", `Bearer ${token}`);
  const response = await fetch(`api/${path}`, { ...options, headers });
  if (response.ok) return response;
  throw new RefusedError(response.status, await problemOf(response));
}
async function problemOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `The dashboard answered with status ${response.status}.`;
  }
}
