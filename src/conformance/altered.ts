import type { Store } from "../store.js";

/** The same store with some of its methods replaced. */
export function altered(store: Store, changes: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(property in changes ? changes : target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
