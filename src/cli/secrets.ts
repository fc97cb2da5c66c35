/**
 * Passwords in the URL of a store. They are found by patterns, not by `new URL`: a URL with several
 * hosts, or a misspelt one, cannot be parsed and holds a password all the same.
 */

/** From the first colon of the credentials to the last `@`: a password may contain either. */
const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/[^\s:@]*:)(\S*)@/gi;
const PARAMETERS = /([?&](?:password|passwd|pass|pwd|secret|token|auth)=)([^\s&#]*)/gi;

const known = new Set<string>();

/** Remembers the secrets of a URL, so that `withoutSecrets` finds them by themselves. */
export function learnSecrets(url: string): void {
  for (const pattern of [CREDENTIALS, PARAMETERS]) {
    for (const [, , secret = ""] of url.matchAll(pattern)) {
      for (const form of [secret, decoded(secret)]) if (form !== "") known.add(form);
    }
  }
}

/** The text with `***` in the place of every secret. */
export function withoutSecrets(text: string): string {
  let clean = text.replace(CREDENTIALS, "$1***@").replace(PARAMETERS, "$1***");
  for (const secret of known) clean = clean.replaceAll(secret, "***");
  return clean;
}

/**
 * Overwrites the arguments of this process where they hold a secret: every user of the machine can
 * read them.
 */
export function hideArguments(args: readonly string[]): void {
  const shown = args.map(withoutSecrets);
  if (shown.some((text, index) => text !== args[index])) {
    process.title = ["holdfast", ...shown].join(" ");
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
