import type { LoneMap } from "../../rules/lone-map.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterGrant } from "./arbiter-grant.js";

/** The owners of one client: an owner has an acquisition that is under way, and then its grant. */
export type Owners = LoneMap<string, Acquisition | ArbiterGrant>;
