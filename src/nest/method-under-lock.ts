import { Inject } from "@nestjs/common";
import { Holdfast } from "../api/holdfast.js";
import { UnsupportedError } from "../errors/index.js";
import { checkName } from "../options/options.js";
import { holdfastToken } from "./token.js";

/** The name of a lock, or a function that makes it from the arguments of a call. */
export type LockName<A extends unknown[]> = string | ((...args: A) => string);

/** An async method that takes at least the arguments of the function that makes the name. */
export type LockableMethod<A extends unknown[], R = unknown> = (
  ...args: [...A, ...never[]]
) => Promise<R>;

/** Runs a call of a method under a lock. */
type UnderLock = (locks: Holdfast, name: string, call: () => Promise<unknown>) => Promise<unknown>;

/** The metadata of functions, where `reflect-metadata` is loaded: Nest loads it. */
interface Metadata {
  getMetadataKeys?(target: object): unknown[];
  getMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

/**
 * Replaces a method by one that runs under a lock. Nest puts the Holdfast into a property of the
 * object, so the class needs no constructor for it.
 */
export function putUnderLock<A extends unknown[]>(
  decorator: string,
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor,
  lock: { name: LockName<A>; holdfast: string | undefined; run: UnderLock },
): void {
  const { name, holdfast, run } = lock;
  const method: unknown = descriptor.value;
  const where = `${target.constructor.name}.${String(key)}`;
  if (typeof method !== "function" || typeof target === "function") {
    throw new UnsupportedError(`@${decorator} is for methods of objects, and ${where} is none.`);
  }
  if (typeof name !== "function") checkName(name);
  const property = injectHoldfast(target, holdfast);
  // Async: a caller that only handles rejections must see no error thrown by the call itself.
  const locked = async function (this: object, ...args: A): Promise<unknown> {
    const locks = (this as Record<symbol, unknown>)[property];
    if (locks instanceof Holdfast) {
      const call = async (): Promise<unknown> => method.apply(this, args);
      return run(locks, typeof name === "function" ? name.apply(this, args) : name, call);
    }
    const advice = "Nest must make the object, as a provider or a controller.";
    throw new UnsupportedError(`@${decorator}: ${where} has no Holdfast. ${advice}`);
  };
  descriptor.value = sameToOthers(locked, method);
}

/** Asks Nest for the Holdfast, once for each class, and returns the property that will have it. */
function injectHoldfast(target: object, name: string | undefined): symbol {
  const property = Symbol.for(`holdfast/nest:${name ?? ""}`);
  const asked = injected.get(target) ?? new Set();
  if (!asked.has(property)) Inject(holdfastToken(name))(target, property);
  injected.set(target, asked.add(property));
  return property;
}

const injected = new WeakMap<object, Set<symbol>>();

/** Decorators below have marked `method`, as a schedule or a route: the new one has the marks. */
function sameToOthers<F extends object>(locked: F, method: { readonly name: string }): F {
  const reflect = Reflect as unknown as Metadata;
  for (const key of reflect.getMetadataKeys?.(method) ?? []) {
    reflect.defineMetadata(key, reflect.getMetadata(key, method), locked);
  }
  return Object.defineProperty(locked, "name", { value: method.name });
}
