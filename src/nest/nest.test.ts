import "reflect-metadata";
import { SetMetadata } from "@nestjs/common";
import { Test, type TestingModule } from "@nestjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Holdfast } from "../api/holdfast.js";
import { AcquireTimeoutError, LeaseLostError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import {
  currentLease,
  HoldfastModule,
  type HoldfastModuleOptions,
  holdfastToken,
  InjectHoldfast,
  Locked,
  Once,
} from "./index.js";

/** The machine may be busy. */
const PATIENCE = { timeout: 20_000 };
const DAY_MS = 86_400_000;

/** Applies decorators as TypeScript does, from the last to the first. */
function decorate(type: { prototype: object }, key: string, ...decorators: unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, key) ?? {};
  for (const one of decorators.reverse()) (one as MethodDecorator)(type.prototype, key, descriptor);
  Object.defineProperty(type.prototype, key, descriptor);
}

class Invoices {
  readonly seen: (Lease | undefined)[] = [];
  gate: Promise<void> = Promise.resolve();

  async pay(id: string): Promise<string> {
    this.seen.push(currentLease());
    await this.gate;
    return `${id} paid`;
  }

  async fail(error: unknown): Promise<void> {
    throw error;
  }

  async report(_day: string): Promise<string | undefined> {
    this.seen.push(currentLease());
    return "sent";
  }

  async archive(): Promise<string | undefined> {
    return currentLease()?.name;
  }

  plain(): number {
    return 7;
  }
}

decorate(
  Invoices,
  "pay",
  SetMetadata("above", 1),
  Locked((id: string) => `invoice:${id}`, { waitMs: 0 }),
  SetMetadata("below", 2),
);
decorate(Invoices, "fail", Locked("fail"));
decorate(
  Invoices,
  "report",
  Once((day: string) => `report:${day}`, { keepMs: DAY_MS }),
);
decorate(Invoices, "archive", Locked("archive", { holdfast: "audit" }));
decorate(Invoices, "plain", Locked("plain") as unknown);

/** Overrides nothing: the locks of its parent. */
class Credits extends Invoices {}

let app: TestingModule | undefined;
const space = new MemorySpace();

async function start(providers: unknown[] = [Invoices]): Promise<TestingModule> {
  const imports = [
    HoldfastModule.forRoot({ store: memoryStore({ space }) }),
    HoldfastModule.forRootAsync({
      name: "audit",
      inject: ["AUDIT_URL"],
      imports: [{ module: class Config {}, ...provided("AUDIT_URL", "memory:") }],
      useFactory: async (url: string) => ({ url, defaults: { ttlMs: 5_000 } }),
    }),
  ];
  app = await Test.createTestingModule({ imports, providers: providers as [] }).compile();
  await app.init();
  return app;
}

function provided(token: string, useValue: unknown) {
  return { providers: [{ provide: token, useValue }], exports: [token] };
}

afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe("the module", () => {
  it("gives a Holdfast by its class or its name, and closes it with the application", async () => {
    class Audit {
      locks: Holdfast | undefined;
    }
    InjectHoldfast("audit")(Audit.prototype, "locks");
    const started = await start([Audit, Invoices]);
    const locks = started.get(Holdfast);
    const audit = started.get<Holdfast>(holdfastToken("audit"));
    expect(started.get(Audit).locks).toBe(audit);
    expect(locks).not.toBe(audit);
    const lease = await locks.mutex("kept").acquire();
    await started.close();
    app = undefined;
    expect(lease.state).not.toBe("held");
    for (const one of [locks, audit]) {
      await expect(one.mutex("a").acquire()).rejects.toThrow(/closed/);
    }
  });

  it("is seen by other modules, unless it is told not to be global", async () => {
    class Feature {}
    const imports = (options: Partial<HoldfastModuleOptions>) => [
      HoldfastModule.forRoot({ url: "memory:", ...options } as HoldfastModuleOptions),
      HoldfastModule.forRoot({ url: "memory:", name: "audit" }),
      { module: Feature, providers: [Invoices] },
    ];
    app = await Test.createTestingModule({ imports: imports({}) }).compile();
    const local = Test.createTestingModule({ imports: imports({ global: false }) }).compile();
    await expect(local).rejects.toThrow(/dependencies of the Invoices/);
  });

  it("lets a test put another Holdfast in its place, and then connects to nothing", async () => {
    const url = "redis://127.0.0.1:1";
    const locks = new Holdfast(memoryStore());
    app = await Test.createTestingModule({ imports: [HoldfastModule.forRoot({ url })] })
      .overrideProvider(Holdfast)
      .useValue(locks)
      .compile();
    expect(app.get(Holdfast)).toBe(locks);
  });

  it("refuses settings that it does not know, or that say two things", async () => {
    expect(() => HoldfastModule.forRoot({ uri: "memory:" } as never)).toThrow(/url/);
    expect(() => HoldfastModule.forRootAsync({} as never)).toThrow(/useFactory/);
    const both = { url: "memory:", store: memoryStore() } as never;
    const compiled = Test.createTestingModule({ imports: [HoldfastModule.forRoot(both)] });
    await expect(compiled.compile()).rejects.toThrow(/beside url/);
  });
});

describe("@Locked", () => {
  it("runs a method under the lock that its arguments name, with its lease at hand", async () => {
    const invoices = (await start()).get(Invoices);
    expect(await invoices.pay("42")).toBe("42 paid");
    expect(invoices.seen[0]).toMatchObject({ name: "invoice:42", state: "released" });
    expect(currentLease()).toBeUndefined();
  });

  it("keeps two calls apart, of other processes, too", async () => {
    const invoices = (await start()).get(Invoices);
    const other = new Holdfast(memoryStore({ space }));
    let open = (): void => {};
    invoices.gate = new Promise((resolve) => {
      open = resolve;
    });
    const paying = invoices.pay("42");
    await expect.poll(() => other.mutex("invoice:42").isHeld(), PATIENCE).toBe(true);
    await expect(invoices.pay("42")).rejects.toThrow(AcquireTimeoutError);
    const [holder] = (await other.inspect("invoice:42")).holders;
    await other.revoke("invoice:42", { token: holder?.token ?? 0n, reason: "stuck" });
    await expect.poll(() => invoices.seen[0]?.signal.aborted, PATIENCE).toBe(true);
    open();
    // The lost lease is told, with the value of the method.
    await expect(paying).rejects.toMatchObject({ name: "LeaseLostError", value: "42 paid" });
    await expect(paying).rejects.toThrow(LeaseLostError);
    await other.close();
  });

  it("passes errors as they are", async () => {
    const invoices = (await start()).get(Invoices);
    for (const error of [new TypeError("wrong"), undefined, "text"]) {
      await expect(invoices.fail(error)).rejects.toBe(error);
    }
  });

  it("works for subclasses, and for a Holdfast by name", async () => {
    const credits = (await start([Credits])).get(Credits);
    expect(await credits.pay("43")).toBe("43 paid");
    expect(await credits.archive()).toBe("archive");
    expect(await app?.get<Holdfast>(holdfastToken("audit")).mutex("archive").isHeld()).toBe(false);
  });

  it("makes a promise of the result of a method that is not async", async () => {
    const invoices = (await start()).get(Invoices);
    expect(await invoices.plain()).toBe(7);
  });

  it("keeps the name and the marks of other decorators, above and below", () => {
    const { pay } = Invoices.prototype;
    expect(pay.name).toBe("pay");
    expect([Reflect.getMetadata("above", pay), Reflect.getMetadata("below", pay)]).toEqual([1, 2]);
  });

  it("says so where Nest did not make the object, and where there is no method", async () => {
    await expect(new Invoices().pay("1")).rejects.toThrow(/Invoices\.pay has no Holdfast/);
    expect(() => decorate(Invoices, "seen", Locked("a"))).toThrow(/Invoices\.seen is none/);
    expect(() => Locked("a", { wait: 1 } as object)).toThrow(/waitMs/);
    expect(() => decorate(Invoices, "pay", Locked(""))).toThrow(/name/);
  });
});

it("a decorated method rejects, and never throws, where its name cannot be made", async () => {
  class Orders {
    async ship(_order: { id: string }): Promise<void> {}
    async count(_order: { id: string }): Promise<number | undefined> {
      return 1;
    }
  }
  decorate(
    Orders,
    "ship",
    Locked((order: { id: string }) => order.id),
  );
  const named = Once((order: { id: string }) => order.id, { keepMs: DAY_MS });
  decorate(Orders, "count", named);
  const orders = (await start([Orders])).get(Orders);
  const nothing = undefined as unknown as { id: string };
  await expect(orders.ship(nothing)).rejects.toThrow(TypeError);
  await expect(orders.count(nothing)).rejects.toThrow(TypeError);
  await expect(orders.ship({ id: "" })).rejects.toMatchObject({ code: "HF_INVALID_OPTION" });
  await expect(orders.count({ id: "" })).rejects.toMatchObject({ code: "HF_INVALID_OPTION" });
});

describe("@Once", () => {
  it("runs a method once for each name, and returns undefined afterwards", async () => {
    const invoices = (await start()).get(Invoices);
    expect(await invoices.report("2026-11-17")).toBe("sent");
    expect(await invoices.report("2026-11-17")).toBeUndefined();
    expect(await invoices.report("2026-11-18")).toBe("sent");
    expect(invoices.seen.map((lease) => lease?.name)).toEqual([
      "report:2026-11-17",
      "report:2026-11-18",
    ]);
  });

  it("wants to know how long", () => {
    expect(() => Once("a", {} as never)).toThrow(/keepMs/);
  });
});
