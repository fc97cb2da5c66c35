/** Peers that bring no declarations an ES module can find; only what is used here. */
declare module "redlock4" {
  // biome-ignore lint/style/noDefaultExport: that is how they export it
  export default class Redlock {
    constructor(clients: readonly unknown[], settings: object);
    lock(name: string, ttlMs: number): PromiseLike<{ unlock(): PromiseLike<unknown> }>;
  }
}

declare module "redlock5" {
  // biome-ignore lint/style/noDefaultExport: that is how they export it
  export default class Redlock {
    constructor(clients: readonly unknown[], settings: object);
    acquire(names: readonly string[], ttlMs: number): Promise<{ release(): Promise<unknown> }>;
  }
}
