import type { Store } from "../contract/store.js";

/**
 * The same store with some of its methods replaced. A store whose `renew` is replaced has no
 * renewer, which would renew all the same.
 */
export function altered(store: Store, replaced: Partial<Store>): Store {
  const changes = "renew" in replaced ? { ...replaced, renewer: undefined } : replaced;
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(property in changes ? changes : target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
