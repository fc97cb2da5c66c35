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

  it("is broken only while the client is no suspect", () => {
    const suspected = overtaken().at(5).happens({ type: "suspected", name: "a", client: "p" });
    expect(checkFifo(serve(suspected).entries)).toEqual([]);
    suspected.at(6).happens({ type: "cleared", name: "a", client: "p" });
    expect(checkFifo(suspected.entries)).toHaveLength(1);
  });

  it("starts anew for a waiter that left, lost its place, or was forgotten", () => {
    expect(checkFifo(serve(overtaken().at(5).withdraws("p/0").queues("p/0")).entries)).toEqual([]);
    expect(checkFifo(serve(overtaken().at(5).queues("p/0")).entries)).toEqual([]);
    const forgotten = overtaken().at(5).happens({ type: "forgot" });
    expect(checkFifo(serve(forgotten).entries)).toEqual([]);
  });

  it("says nothing of a waiter that asked again and was granted at once", () => {
    const story = overtaken()
      .at(10)
      .grants("q/0", 10n, { isHandoff: true })
      .at(20)
      .grants("p/0", 20n);
    expect(checkFifo(story.entries)).toEqual([]);
  });

  describe("in a run", () => {
    /** `p/0`, `q/0` and `p/1` queue; `p/0` is handed the lock, and `p/1` named as its follower. */
    function passed(): Story {
      const story = new Story().at(0).queues("p/0").at(1).queues("q/0").at(2).queues("p/1");
      const followers = ["p/1"];
      return story.at(10).grants("p/0", 10n, { isHandoff: true, span: 2, followers });
    }

    it("is broken by a follower that holds before a waiter ahead of it", () => {
      const story = passed().at(11).asks("p/1").takes("p/1", 11n, 99);
      story.at(20).grants("q/0", 20n, { isHandoff: true }).asks("q/0").takes("q/0", 20n, 99);
      const [violation] = checkFifo(story.entries);
      expect(violation?.message).toBe('p/0 got "a" before q/0, which had queued earlier');
    });

    it("is kept if the follower took no turn, or the waiter ahead of it had given up", () => {
      const unused = passed().at(20).grants("q/0", 20n, { isHandoff: true });
      unused.asks("q/0").takes("q/0", 20n, 99);
      expect(checkFifo(unused.entries)).toEqual([]);
      const givenUp = passed().at(11).asks("p/1").takes("p/1", 11n, 99);
      givenUp.at(20).grants("q/0", 20n, { isHandoff: true });
      expect(checkFifo(givenUp.entries)).toEqual([]);
    });
  });
});
