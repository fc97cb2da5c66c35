import type { DynamicModule, FactoryProvider, ModuleMetadata } from "@nestjs/common";
import { connect } from "../api/connect.js";
import { Holdfast } from "../api/holdfast.js";
import type { Store } from "../contract/store.js";
import { InvalidOptionError } from "../errors/index.js";
import { knownOptions } from "../options/known-options.js";
import type { AcquireOptions } from "../options/options.js";
import { holdfastToken } from "./token.js";

/** The store of a `Holdfast`, by its URL or itself, and the defaults of its locks. */
export type HoldfastSettings = { readonly defaults?: AcquireOptions | undefined } & (
  | { readonly url: string; readonly store?: undefined }
  | { readonly store: Store; readonly url?: undefined }
);

/** Where the `Holdfast` of a module is found. */
export interface HoldfastPlace {
  /** Tells several of them apart: `@Locked(…, { holdfast: name })`. Default: the one without. */
  readonly name?: string | undefined;
  /** Whether every module sees it without importing this one. Default true. */
  readonly global?: boolean | undefined;
}

/** The options of `forRoot`. */
export type HoldfastModuleOptions = HoldfastPlace & HoldfastSettings;

/** The options of `forRootAsync`: a factory of the settings, and the providers that it takes. */
export interface HoldfastModuleAsyncOptions
  extends HoldfastPlace,
    Pick<ModuleMetadata, "imports">,
    Pick<FactoryProvider<HoldfastSettings>, "inject" | "useFactory"> {}

const PLACE = ["name", "global"] as const;
const SETTINGS = ["url", "store", "defaults"] as const;
const EXAMPLE = "must be an object: { url: process.env.HOLDFAST_STORE }";

/** Opens a `Holdfast` when the application starts, and closes it when the application ends. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class HoldfastModule {
  /**
   * A module with a `Holdfast` of these settings. `url: "memory:"` needs no server, for tests.
   */
  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    const { name, global, ...settings } = knownOptions(options, [...PLACE, ...SETTINGS], EXAMPLE);
    return moduleOf({ name, global }, { useFactory: () => open(settings as HoldfastSettings) });
  }

  /**
   * The same with settings that other providers give.
   */
  static forRootAsync(options: HoldfastModuleAsyncOptions): DynamicModule {
    const names = [...PLACE, "imports", "inject", "useFactory"] as const;
    const { name, global, imports, inject, useFactory } = knownOptions(options, names);
    if (typeof useFactory !== "function") {
      const rule = "must be a function that returns the settings: () => ({ url })";
      throw new InvalidOptionError("useFactory", useFactory, rule);
    }
    const opener = async (...dependencies: unknown[]): Promise<Holdfast> =>
      open(await useFactory(...dependencies));
    return moduleOf({ name, global }, { inject: inject ?? [], useFactory: opener }, imports);
  }
}

function moduleOf(
  { name, global = true }: HoldfastPlace,
  opener: Pick<FactoryProvider<Holdfast>, "inject" | "useFactory">,
  imports: ModuleMetadata["imports"] = [],
): DynamicModule {
  const token = holdfastToken(name);
  const closer = {
    provide: `HoldfastCloser:${name ?? ""}`,
    inject: [token],
    useFactory: (locks: Holdfast) => new HoldfastCloser(locks),
  };
  return {
    module: HoldfastModule,
    global,
    imports,
    providers: [{ provide: token, ...opener }, closer],
    exports: [token],
  };
}

async function open(given: HoldfastSettings): Promise<Holdfast> {
  const { url, store, defaults } = knownOptions(given, SETTINGS, EXAMPLE);
  if (url !== undefined && store !== undefined) {
    throw new InvalidOptionError("store", "a store", "must not be given beside url");
  }
  return store === undefined ? connect(url, defaults) : new Holdfast(store, defaults);
}

/** Nest calls it after the servers were closed: requests under way have ended. */
class HoldfastCloser {
  readonly #locks: Holdfast;

  constructor(locks: Holdfast) {
    this.#locks = locks;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#locks.close();
  }
}
