import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { listen, unlisten } from "./abort-listeners.js";

it("are told once each, in order, and are one to the signal", () => {
  const controller = new AbortController();
  const { signal } = controller;
  const told: number[] = [];
  const listeners = Array.from({ length: 20 }, (_, at) => ({ onAbort: () => void told.push(at) }));
  for (const listener of listeners) listen(signal, listener);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  for (const listener of listeners.slice(3)) unlisten(signal, listener);
  controller.abort();
  expect(told).toEqual([0, 1, 2]);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("leave nothing with a signal that all of them left, and may come back", () => {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const listener = {
    onAbort() {
      count += 1;
    },
  };
  for (let round = 0; round < 2; round += 1) {
    listen(signal, listener);
    unlisten(signal, listener);
    unlisten(signal, listener);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  }
  listen(signal, listener);
  controller.abort();
  controller.abort();
  expect(count).toBe(1);
});

it("that leave while another is told are not told", () => {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const second = {
    onAbort() {
      count += 1;
    },
  };
  listen(signal, { onAbort: () => unlisten(signal, second) });
  listen(signal, second);
  controller.abort();
  expect(count).toBe(0);
});
