import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import {
  type DoubleConnection,
  SESSION,
  ZookeeperDouble,
} from "../../../test/fixtures/zookeeper-double.js";
import { SessionConnections, SessionGoneError } from "./session-connections.js";
import type { Connection } from "./wire/connection.js";
import { check, exists, multi } from "./wire/requests.js";

const TIMEOUT_MS = 4_000;
const LIMIT_MS = 1_000;

let runtime: ManualRuntime;
let server: ZookeeperDouble;

beforeEach(() => {
  runtime = new ManualRuntime();
  server = new ZookeeperDouble();
});

async function open(isDirect = false): Promise<SessionConnections> {
  const servers = { ensemble: server.ensemble(runtime), isDirect };
  const connections = await SessionConnections.open(TIMEOUT_MS, servers, LIMIT_MS);
  await settled();
  return connections;
}

function prove(connections: SessionConnections): Promise<unknown> {
  return connections.prove((connection) => connection.send(multi([check("/")])), LIMIT_MS);
}

const look = (connection: Connection): Promise<unknown> => connection.send(exists("/a"));

/** The states of all connections for the session: true where one is open. */
function opened(): boolean[] {
  return server.sessions.map(({ isOpen }) => isOpen);
}

describe("a proof", () => {
  it("resumes the session on a new connection, and closes the one before", async () => {
    const connections = await open();
    await prove(connections);
    expect(server.sessions.map(({ session }) => session)).toEqual([0n, 9n]);
    expect(opened()).toEqual([false, true]);
    expect(server.sessions[1]?.requests.map(({ type }) => type)).toEqual(["write"]);
    expect(runtime.alarms).toBe(0);
  });

  it("needs no new connection at the leader, where the addresses are direct", async () => {
    server.mode = "leader";
    const connections = await open(true);
    await prove(connections);
    expect(opened()).toEqual([true]);
    expect(server.sessions[0]?.requests.map(({ type }) => type)).toEqual(["write"]);
  });

  it.each([
    ["through a follower", "follower", true],
    ["through a balancer", "leader", false],
  ] as const)("resumes the session %s", async (_, mode, isDirect) => {
    server.mode = mode;
    const connections = await open(isDirect);
    await prove(connections);
    expect(opened()).toEqual([false, true]);
  });

  it("resumes the session again after the connection to the leader has ended", async () => {
    server.mode = "leader";
    const connections = await open(true);
    server.mode = "follower";
    server.connections[0]?.end();
    await settled();
    await prove(connections);
    expect(server.sessions.map(({ session }) => session)).toEqual([0n, 0n, SESSION]);
    expect(opened()).toEqual([false, false, true]);
  });

  it("waits for requests under way, and new requests wait for it", async () => {
    const connections = await open();
    server.onRequest = () => null;
    const first = connections.use(look, LIMIT_MS);
    await settled();
    server.onRequest = (request) => server.answer(request);
    const proven = prove(connections);
    const second = connections.use(look, LIMIT_MS);
    await settled();
    expect(server.sessions).toHaveLength(1);
    const [request] = server.sessions[0]?.requests ?? [];
    if (request) server.sessions[0]?.send(server.answer(request));
    await Promise.all([first, proven, second]);
    const sent = server.sessions.map(({ requests }) => requests.map(({ type }) => type));
    expect(sent).toEqual([["exists"], ["write", "exists"]]);
  });

  it("does not wait for long for a request that is not answered", async () => {
    const connections = await open();
    server.onRequest = (request) => (request.type === "exists" ? null : server.answer(request));
    const first = connections.use(look, LIMIT_MS).catch((error: Error) => error.message);
    await settled();
    const proven = prove(connections);
    await runtime.advance(TIMEOUT_MS / 20);
    await proven;
    expect(await first).toMatch(/closed/);
  });

  it("fails where the server does not resume the session in time", async () => {
    const connections = await open();
    server.onSession = () => {};
    const failed = expect(prove(connections)).rejects.toThrow(/no session within 500 ms/);
    await runtime.advance(500);
    await failed;
    expect(opened()).toEqual([true, false]);
  });
});

describe("a request", () => {
  it("that waits for a resume, and then for a connection, ends within its limit", async () => {
    const connections = await open();
    server.onSession = () => {};
    const proven = prove(connections).catch((error: Error) => error.message);
    server.sessions[0]?.end();
    await settled();
    let isOver = false;
    const used = connections.use(look, LIMIT_MS).catch(() => (isOver = true));
    await runtime.advance(LIMIT_MS);
    expect(isOver).toBe(true);
    await Promise.all([proven, used]);
    expect(server.sessions.length).toBeGreaterThan(2);
  });
});

describe("a session that is over", () => {
  it("is told at the next proof, and asked for no more", async () => {
    const connections = await open();
    server.onSession = (connection) => connection.open(0);
    await expect(prove(connections)).rejects.toThrow(SessionGoneError);
    server.sessions[0]?.end();
    await settled();
    await expect(connections.use(look, LIMIT_MS)).rejects.toThrow(SessionGoneError);
    expect(server.sessions).toHaveLength(2);
  });

  it("is ended where a server resumes it for less time", async () => {
    const connections = await open();
    server.onSession = (connection) => connection.open(TIMEOUT_MS / 2);
    await expect(prove(connections)).rejects.toThrow("for 2000 ms only");
    expect(server.sessions[1]?.requests.map(({ type }) => type)).toContain("closeSession");
  });
});

describe("a server with a lower maxSessionTimeout", () => {
  /** The second of two servers, at which the session was not opened. */
  const isSecond = ({ remotePort }: DoubleConnection): boolean => remotePort !== firstPort;
  let firstPort = 0;

  async function openAtFirst(): Promise<SessionConnections> {
    server.count = 2;
    const connections = await open();
    firstPort = server.sessions[0]?.remotePort ?? 0;
    return connections;
  }

  it("is asked by another session before it resumes one, and then does not resume it", async () => {
    const connections = await openAtFirst();
    server.onSession = (connection) => {
      if (isSecond(connection)) connection.open(TIMEOUT_MS / 2);
    };
    const silent = expect(prove(connections)).rejects.toThrow(/no session within 500 ms/);
    await runtime.advance(500);
    await silent;
    await expect(prove(connections)).rejects.toThrow(/keeps sessions for 2000 ms at most/);
    await settled();
    const asked = server.sessions.filter(isSecond);
    expect(asked.map(({ session }) => session)).toEqual([0n]);
    expect(asked[0]?.requests.map(({ type }) => type)).toEqual(["closeSession"]);
    server.onSession = (connection) => connection.open();
    await prove(connections);
    expect(server.sessions.at(-1)).toMatchObject({ remotePort: firstPort, session: SESSION });
    expect(runtime.alarms).toBe(0);
  });

  it("is not used for requests, either", async () => {
    const connections = await openAtFirst();
    server.onSession = (connection) => {
      if (isSecond(connection)) connection.open(TIMEOUT_MS / 2);
      else connection.end();
    };
    server.sessions[0]?.end();
    await settled();
    await expect(connections.use(look, LIMIT_MS)).rejects.toThrow(/2000 ms at most/);
    expect(server.sessions.filter(isSecond).map(({ session }) => session)).toEqual([0n]);
  });

  it("that grants the time-out resumes the session, and the other session is ended", async () => {
    const connections = await openAtFirst();
    server.onSession = (connection) => {
      if (isSecond(connection)) connection.open();
    };
    const silent = expect(prove(connections)).rejects.toThrow(/no session/);
    await runtime.advance(500);
    await silent;
    await prove(connections);
    await settled();
    const asked = server.sessions.filter(isSecond);
    expect(asked.map(({ session, isOpen }) => [session, isOpen])).toEqual([
      [0n, false],
      [SESSION, true],
    ]);
    expect(asked[0]?.requests.map(({ type }) => type)).toEqual(["closeSession"]);
  });
});

describe("close", () => {
  it("ends the connection, and leaves the session", async () => {
    const connections = await open();
    connections.close();
    expect(opened()).toEqual([false]);
    expect(server.sessions[0]?.requests).toEqual([]);
  });

  it("ends a resume that is under way", async () => {
    const connections = await open();
    server.onSession = () => {};
    const proven = prove(connections).catch((error: Error) => error.message);
    await settled();
    expect(opened()).toEqual([true, true]);
    connections.close();
    server.sessions[1]?.open();
    expect(await proven).toMatch(/closed/);
    await settled();
    expect(opened()).toEqual([false, false]);
    expect(runtime.alarms).toBe(0);
  });

  it("ends a connection that a request waits for", async () => {
    const connections = await open();
    server.sessions[0]?.end();
    await settled();
    server.onSession = () => {};
    const used = connections.use(look, LIMIT_MS).catch((error: Error) => error.message);
    await settled();
    connections.close();
    server.sessions[1]?.open();
    expect(await used).toMatch(/closed/);
    await settled();
    expect(opened()).toEqual([false, false]);
  });
});
