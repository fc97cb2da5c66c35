import { describe, expect, it } from "vitest";
import { checkFifo } from "./fifo.js";
import { Story } from "./story.js";

/** `p` queues before `q`, and `q` is served first. */
function overtaken(): Story {
  return new Story().at(0).queues("p/0").at(1).queues("q/0");
}

const serve = (story: Story): Story =>
  story
    .at(10)
    .grants("q/0", 10n, { isHandoff: true })
    .at(20)
    .grants("p/0", 20n, { isHandoff: true });

describe("first come, first served", () => {
  it("is broken by a waiter that is served before one that queued earlier", () => {
    const [violation] = checkFifo(serve(overtaken()).entries);
    expect(violation?.message).toBe('q/0 got "a" before p/0, which had queued earlier');
  });

  it("is broken by a newcomer that does not queue at all", () => {
    const story = new Story().at(0).queues("p/0").at(1).grants("q/0", 10n);
    story.at(2).grants("p/0", 20n, { isHandoff: true });
    expect(checkFifo(story.entries)).toHaveLength(1);
  });

  it("is kept in order", () => {
    const story = overtaken().at(10).grants("p/0", 10n, { isHandoff: true });
    story.at(20).grants("q/0", 20n, { isHandoff: true });
    expect(checkFifo(story.entries)).toEqual([]);
  });

  it("is broken only while the client is responsive", () => {
    const story = overtaken().at(5).happens({ type: "unresponsive", name: "a", client: "p" });
    expect(checkFifo(serve(story).entries)).toEqual([]);
    story.at(6).happens({ type: "responsive", name: "a", client: "p" });
    expect(checkFifo(story.entries)).toHaveLength(1);
  });

  it("starts again for a waiter that left, lost its place, or was forgotten", () => {
    expect(checkFifo(serve(overtaken().at(5).withdraws("p/0").queues("p/0")).entries)).toEqual([]);
    const dropped = overtaken().at(5).happens({ type: "dropped", name: "a", owner: "p/0" });
    expect(checkFifo(serve(dropped.queues("p/0")).entries)).toEqual([]);
    const forgotten = overtaken().at(5).happens({ type: "forgot" });
    expect(checkFifo(serve(forgotten).entries)).toEqual([]);
  });

  it("is broken whatever becomes of other waiters, clients and names", () => {
    const broken = (story: Story) => expect(checkFifo(serve(story).entries)).toHaveLength(1);
    broken(overtaken().at(5).withdraws("r/0"));
    broken(overtaken().at(5).happens({ type: "dropped", name: "a", owner: "r/0" }));
    broken(overtaken().at(5).happens({ type: "unresponsive", name: "a", client: "q" }));
    broken(overtaken().at(5).happens({ type: "unresponsive", name: "b", client: "p" }));
    broken(new Story().at(0).happens({ type: "forgot" }).queues("p/0").at(1).queues("q/0"));
    broken(overtaken().at(15).happens({ type: "unresponsive", name: "a", client: "p" }));
  });

  it("is broken for a waiter that is granted the lock when it asks again", () => {
    const story = overtaken().at(10).grants("q/0", 10n, { isHandoff: true });
    expect(checkFifo(story.at(20).grants("p/0", 20n).entries)).toHaveLength(1);
  });

  it("is broken among waiters of one instant", () => {
    const story = new Story().at(0).queues("p/0").queues("q/0");
    expect(checkFifo(serve(story).entries)).toHaveLength(1);
  });
});
