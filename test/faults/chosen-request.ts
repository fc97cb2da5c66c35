import type { ProxiedRequest } from "./framing.js";

/** Selects the request that a fault hits. */
export interface Choice {
  /**
   * A command name, or a test of the request. Default: any. Names need a proxy with framing;
   * without it every chunk counts as a request with the command "".
   */
  readonly match?: string | ((request: ProxiedRequest) => boolean);
  /** Counts the requests that match, from now on: the n-th is chosen. Default 1. */
  readonly nth?: number;
}

/** Returns true once, for the chosen request. */
export function chooser({ match, nth = 1 }: Choice): (request: ProxiedRequest) => boolean {
  let matches = 0;
  return (request) => {
    if (typeof match === "string" && request.command !== match.toUpperCase()) return false;
    if (typeof match === "function" && !match(request)) return false;
    matches += 1;
    return matches === nth;
  };
}
