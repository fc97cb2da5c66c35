import { isOwnId } from "./layout.js";

/** Names an entry and the session that it is in: `<leaseId>/<entryId>`. */
export interface Locator {
  readonly leaseId: string;
  readonly entryId: string;
}

export function locatorText({ leaseId, entryId }: Locator): string {
  return `${leaseId}/${entryId}`;
}

/** A locator may have come by any way: null where the text is none. */
export function readLocator(text: string): Locator | null {
  const [leaseId = "", entryId = ""] = text.split("/");
  return /^[0-9a-f]+$/.test(leaseId) && isOwnId(entryId) ? { leaseId, entryId } : null;
}
