/** Client tools: each call runs once, and its result arrives. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type ClientTools, type ConversationOptions, Everturn, type Locks, memoryStorage } from "../src/index.js";
import { FakeGateway, problem, type Seen } from "./support/server.js";

const POSTS = "/api/v1/agent/conversations/c/client-tools/";

/** Takes every result. */
const taken = () => ({ status: 202, json: {} });
/** Gives every claim. */
const free = (_seen: Seen): any => ({ json: { is_repeated: false } });

/** A gateway with these calls of the tool `double` waiting, which takes results as `take` says, and claims as `claim`. */
async function start(t: TestContext, calls: string[], take: (seen: Seen) => any = taken, claim = free) {
  const gateway = await FakeGateway.start(t);
  const results: [string, unknown][] = [];
  gateway.answer = (seen) => {
    if (seen.path.endsWith("/claim")) return claim(seen);
    if (seen.method === "POST" && seen.path.startsWith(POSTS)) {
      const answer = take(seen);
      if (answer?.status === 202) results.push([seen.path.slice(POSTS.length), seen.body]);
      return answer;
    }
    return { json: { events: [], has_more: false, client_tools: [] } };
  };
  const asked = calls.flatMap((id, at) => {
    const fields = { execution_id: id, tool_name: "double", tool_input: { n: at }, message_id: "msg_1" };
    return [
      { data: { type: "act", ...fields, sequence_number: 2 * at + 1 } },
      { data: { type: "client_tool_requested", ...fields, sequence_number: 2 * at + 2 } },
    ];
  });
  gateway.onStream(...Array.from({ length: 5 }, () => (stream: any) => stream.frames(...asked)));
  return { gateway, results };
}

/** The locks of a browser in which no other page is open, as after a reload. */
const NO_OTHER_PAGE: Locks = { request: (_name, _options, run) => run("granted") };

function follow(t: TestContext, gateway: FakeGateway, tools: ClientTools, options: ConversationOptions = {}) {
  const limits = { attempts: 2, parallelTools: 2, connections: 3 };
  const chat = new Everturn({ url: gateway.url, limits }).conversation("c", { tools, ...options });
  t.after(chat.subscribe(() => undefined));
  return chat;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("calls run, two at once at the most, and what a tool throws is a result, too", async (t) => {
  const calls = ["exec_0", "exec_1", "exec_2", "exec_3"];
  const { gateway, results } = await start(t, calls);
  let [running, most] = [0, 0];
  const double = async ({ n }: { n: number }) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
    if (n === 3) throw new Error("three is too much");
    return n === 0 ? undefined : { twice: 2 * n };
  };
  follow(t, gateway, { double });
  await until(() => results.length === 4);
  assert.deepEqual(Object.fromEntries(results), {
    exec_0: { result: null, is_error: false },
    exec_1: { result: { twice: 2 }, is_error: false },
    exec_2: { result: { twice: 4 }, is_error: false },
    exec_3: { result: { error: "three is too much" }, is_error: true },
  });
  assert.equal(most, 2);
});

test("a call of somebody else's tool is left alone", async (t) => {
  const { gateway, results } = await start(t, ["exec_0"]);
  const chat = follow(t, gateway, { triple: () => assert.fail("it is not asked for") });
  await until(() => chat.current.state.status === "waiting");
  assert.deepEqual(results, []);
});

test("a tool that was cut off by a reload is not run again, unless it may", async (t) => {
  for (const mayRepeat of [false, true]) {
    const { gateway, results } = await start(t, ["exec_0"]);
    const storage = memoryStorage();
    let runs = 0;
    const hangs = { run: () => (runs++, new Promise(() => undefined)), mayRepeat };
    follow(t, gateway, { double: hangs }, { storage, locks: NO_OTHER_PAGE });
    await until(() => runs === 1);
    // The page is loaded again: the promise of the first one never comes back.
    follow(t, gateway, { double: { run: () => (runs++, "again"), mayRepeat } }, { storage, locks: NO_OTHER_PAGE });
    await until(() => results.length === 1);
    assert.equal(runs, mayRepeat ? 2 : 1);
    const { result, is_error } = results[0]![1] as { result: { error: string }; is_error: boolean };
    if (mayRepeat) assert.equal(result, "again");
    else assert.match(result.error, /is unknown/);
    assert.equal(is_error, !mayRepeat);
  }
});

test("a result that did not arrive is posted again after a reload, and the tool does not run again", async (t) => {
  let isAway = true;
  const { gateway, results } = await start(t, ["exec_0"], () => (isAway ? { cut: true } : { status: 202, json: {} }));
  const storage = memoryStorage();
  let runs = 0;
  const double = () => ({ run: ++runs });
  follow(t, gateway, { double }, { storage, locks: NO_OTHER_PAGE });
  await until(() => gateway.requests.filter((seen) => seen.path === `${POSTS}exec_0`).length >= 2);
  isAway = false;
  follow(t, gateway, { double }, { storage, locks: NO_OTHER_PAGE });
  await until(() => results.length >= 1);
  assert.deepEqual(results[0], ["exec_0", { result: { run: 1 }, is_error: false }]);
  assert.equal(runs, 1);
});

test("in two tabs a call runs once", async (t) => {
  const { gateway, results } = await start(t, ["exec_0"]);
  const storage = memoryStorage();
  let [runs, finish]: [number, () => void] = [0, () => undefined];
  const double = () => (runs++, new Promise<string>((resolve) => (finish = () => resolve("done"))));
  const tabs = [follow(t, gateway, { double }, { storage }), follow(t, gateway, { double }, { storage })];
  await until(() => runs > 0 && tabs.every((tab) => tab.current.state.status === "waiting"));
  finish();
  // The second tab has waited, and asks the gateway whether anybody still waits for the call.
  await until(() => gateway.requests.some((seen) => seen.method === "GET" && `${seen.path}/` === POSTS));
  assert.equal(runs, 1);
  assert.deepEqual(results, [["exec_0", { result: "done", is_error: false }]]);
});

test("on two devices a call runs once", async (t) => {
  const claimants: string[] = [];
  let hasResult = false;
  const claim = ({ body }: Seen) => {
    claimants.push(body.claimant);
    if (body.claimant === claimants[0]) return free(body);
    const code = hasResult ? "client_tool_answered" : "client_tool_claimed";
    return { status: 409, json: problem(code, 409), headers: { "retry-after": "1" } };
  };
  const { gateway, results } = await start(t, ["exec_0"], taken, claim);
  let [runs, finish]: [number, () => void] = [0, () => undefined];
  const double = () => (runs++, new Promise<string>((resolve) => (finish = () => resolve("done"))));
  for (const _device of ["laptop", "phone"]) follow(t, gateway, { double }, { locks: NO_OTHER_PAGE });
  await until(() => runs === 1 && new Set(claimants).size === 2);
  finish();
  await until(() => results.length === 1);
  hasResult = true;
  await until(() => claimants.length === 3);
  assert.equal(runs, 1, "the other device claims again, and hears that there is nothing to run");
  assert.deepEqual(results, [["exec_0", { result: "done", is_error: false }]]);
});

test("a call of a device that died is not run again, unless it may", async (t) => {
  for (const mayRepeat of [false, true]) {
    const { gateway, results } = await start(t, ["exec_0"], taken, () => ({ json: { is_repeated: true } }));
    follow(t, gateway, { double: { run: () => "again", mayRepeat } });
    await until(() => results.length === 1);
    const { result } = results[0]![1] as { result: { error: string } };
    if (mayRepeat) assert.equal(result, "again");
    else assert.match(result.error, /is unknown/);
  }
});

test("a tool that takes long keeps its claim", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const claimants: string[] = [];
  const claim = ({ body }: Seen) => (claimants.push(body.claimant), free(body));
  const { gateway, results } = await start(t, ["exec_0"], taken, claim);
  let finish: (() => void) | undefined;
  follow(t, gateway, { double: () => new Promise<void>((resolve) => (finish = resolve)) });
  await until(() => finish !== undefined);
  t.mock.timers.tick(10_000);
  await until(() => claimants.length === 2);
  assert.equal(claimants[0], claimants[1]);
  finish!();
  await until(() => results.length === 1);
  t.mock.timers.tick(10_000);
  assert.equal(claimants.length, 2, "a call that has its result needs no claim");
});

test("another client that was first is no error, and a result that is too large is told to the model", async (t) => {
  const posts: unknown[] = [];
  const { gateway } = await start(t, ["exec_0", "exec_1"], ({ path, body }) => {
    posts.push(body.result);
    if (path.endsWith("exec_0")) return { status: 409, json: problem("client_tool_answered", 409) };
    return typeof body.result === "object" ? taken() : { status: 413, json: problem("result_too_large", 413) };
  });
  follow(t, gateway, { double: ({ n }) => `result ${n}` });
  await until(() => posts.length === 3);
  assert.deepEqual(posts.slice(0, 2).sort(), ["result 0", "result 1"]);
  assert.deepEqual(posts[2], { error: "A sentence for people." });
});

test("a call that has ended aborts its tool", async (t) => {
  const { gateway } = await start(t, []);
  const of = { execution_id: "exec_0", tool_name: "double", message_id: "msg_1" };
  gateway.onStream((stream) => {
    stream.frames(
      { data: { type: "act", ...of, sequence_number: 1 } },
      { data: { type: "client_tool_requested", ...of, sequence_number: 2 } },
    );
    void until(() => reason === "running").then(() =>
      stream.frames({ data: { type: "observe", ...of, sequence_number: 3, is_error: true } }),
    );
  });
  let reason: unknown;
  follow(t, gateway, {
    double: (_input, { signal }) => {
      reason = "running";
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve((reason = signal.reason))));
    },
  });
  await until(() => reason instanceof Error);
});
