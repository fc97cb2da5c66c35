import { describe, expect, it } from "vitest";
import { encodeCommand, type Reply, RespError, readMessage } from "./resp.js";

describe("readMessage", () => {
  const messages: [text: string, value: Reply][] = [
    ["+OK\r\n", "OK"],
    [":1789000000000001\r\n", 1789000000000001],
    ["$-1\r\n", null],
    ["$6\r\na\r\nb\r\n\r\n", "a\r\nb\r\n"],
    ["*-1\r\n", null],
    ["*3\r\n$1\r\na\r\n*1\r\n:1\r\n*0\r\n", ["a", [1], []]],
    ["_\r\n", null],
    ["#t\r\n", true],
    ["%1\r\n+key\r\n,1.5\r\n", ["key", "1.5"]],
    [">2\r\n$7\r\nmessage\r\n+x\r\n", ["message", "x"]],
  ];

  it.each(messages)("waits for all bytes of %j", (text, value) => {
    const bytes = Buffer.from(text);
    for (let length = 0; length < bytes.length; length++) {
      expect(readMessage(bytes.subarray(0, length))).toBeUndefined();
    }
    const followed = Buffer.concat([bytes, Buffer.from("+next\r\n")]);
    expect(readMessage(followed)).toEqual({ type: text.charAt(0), value, end: bytes.length });
  });

  it("returns errors as values", () => {
    expect(readMessage(Buffer.from("-ERR no\r\n"))?.value).toEqual(new RespError("ERR no"));
    expect(readMessage(Buffer.from("!6\r\nERR no\r\n"))?.value).toEqual(new RespError("ERR no"));
  });

  it("reads what encodeCommand writes, counted in bytes", () => {
    const bytes = encodeCommand(["SET", "grün", 7]);
    expect(readMessage(bytes)?.value).toEqual(["SET", "grün", "7"]);
  });
});
