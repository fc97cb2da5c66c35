import { Inject, type InjectionToken } from "@nestjs/common";
import { Holdfast } from "../api/holdfast.js";

/**
 * The token of a `Holdfast` in the container of Nest: its class, or a text where it has a name.
 *
 * @example
 * import { holdfastToken } from "holdfast/nest";
 *
 * const audit = { provide: holdfastToken("audit"), useValue: locks };
 */
export function holdfastToken(name?: string): InjectionToken<Holdfast> {
  return name === undefined ? Holdfast : `Holdfast:${name}`;
}

/**
 * Injects the `Holdfast` of this name. The one without a name is injected by its class.
 */
export function InjectHoldfast(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(holdfastToken(name));
}
