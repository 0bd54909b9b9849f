/** Sending, client tools, pages and errors, against a gateway that the test plays. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Everturn, type EverturnOptions, memoryStorage, pendingApprovals, reduce, TurnError } from "../src/index.js";
import { FakeGateway, problem, type Seen } from "./support/server.js";

const EVENTS = "/api/v1/agent/conversations/c/events";
const MESSAGES = "/api/v1/agent/conversations/c/messages";

/** A gateway whose conversation `c` has these events in its newest page. */
async function start(t: TestContext, answers: Record<string, (seen: Seen) => any>, events: object[] = []) {
  const gateway = await FakeGateway.start(t);
  gateway.answer = (seen) => {
    const target = `${seen.method} ${seen.path.split("?")[0]}`;
    const answer = answers[target];
    if (answer) return answer(seen);
    if (target === `GET ${EVENTS}`) return { json: { events, has_more: false } };
    return { status: 404, json: problem("not_found", 404) };
  };
  return gateway;
}

function client(gateway: FakeGateway, options: Partial<EverturnOptions> = {}) {
  const limits = { attempts: 3, requestMs: 2000, connections: 5 };
  return new Everturn({ url: gateway.url, limits, ...options });
}

const event = (sequence_number: number, type: string, fields: object) => ({
  id: `${sequence_number}-a`,
  data: { type, message_id: "msg_1", sequence_number, created_at: "2026-11-24T04:00:00.000Z", ...fields },
});
const user = (at: number, id = "msg_1") => event(at, "user_message", { content: "Hi", message_id: id });
const answer = (at: number) => event(at, "assistant_message", { content: "Hello.", message_id: "msg_a" });
const part = (at: number) => event(at, "assistant_message", { content: "Hello.", message_id: "msg_b", finish: "length" });
const complete = (at: number) => event(at, "complete", { finish: "stop" });
const accepted = { status: 202, json: { conversation_id: "c", message_id: "msg_1", status: "queued" } };
const missing = { status: 404, json: problem("conversation_not_found", 404) };

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("a message is pending at once, and the first one creates its conversation", async (t) => {
  let exists = false;
  const sent: unknown[] = [];
  const gateway = await start(t, {
    [`GET ${EVENTS}`]: () => (exists ? { json: { events: [], has_more: false } } : missing),
    [`POST ${MESSAGES}`]: ({ body }) => {
      exists = true;
      sent.push(body);
      return accepted;
    },
  });
  gateway.onStream((stream) => stream.frames(user(1), answer(2), complete(3)));
  const chat = client(gateway).conversation("c", { agent: "poet" });
  const pending: string[] = [];
  for await (const update of chat.send("Hi")) pending.push(update.pending.map((message) => message.content).join());
  assert.equal(pending[0], "Hi");
  assert.equal(pending.at(-1), "");
  assert.deepEqual(sent.map((body: any) => body.create), [{ agent: "poet" }], "one request, which creates it");
  assert.deepEqual(chat.current.state.items.map((item) => item.type), ["user_message", "assistant_message", "end"]);
  await gateway.untilIdle();
});

test("a message that nobody confirmed is sent again with its id, also after a reload", async (t) => {
  const ids: string[] = [];
  let isAway = true;
  const gateway = await start(t, {
    [`POST ${MESSAGES}`]: ({ body }) => {
      ids.push(body.message_id);
      return isAway ? { cut: true } : accepted;
    },
  });
  const storage = memoryStorage();
  const before = client(gateway).conversation("c", { storage });
  await assert.rejects(before.post("Hi", { onBusy: "steer" }), { code: "unreachable" });
  assert.equal(before.current.pending[0]?.state, "failed");
  assert.equal(ids.length, 3, "it was tried `attempts` times");

  isAway = false;
  gateway.onStream((stream) => void until(() => ids.length === 4).then(() => stream.frames(user(1), complete(2))));
  const after = client(gateway).conversation("c", { storage });
  for await (const { state, pending } of after.follow()) {
    if (state.items.length === 2 && pending.length === 0) break;
  }
  assert.equal(new Set(ids).size, 1, ids.join());
  assert.equal(gateway.requests.findLast((seen) => seen.method === "POST")?.body.on_busy, "steer");
  assert.equal(storage.length, 0);
});

/** A gateway without the conversation `c`, until a message creates it. */
async function startEmpty(t: TestContext) {
  let exists = false;
  const gateway = await start(t, {
    [`GET ${EVENTS}`]: () => (exists ? { json: { events: [], has_more: false } } : missing),
    [`POST ${MESSAGES}`]: () => ((exists = true), accepted),
  });
  gateway.onStream((stream) => stream.frames(user(1), answer(2), complete(3)));
  return gateway;
}

test("who listens before the first message sees its turn, however late the message is", async (t) => {
  const gateway = await startEmpty(t);
  const chat = client(gateway).conversation("c");
  t.after(chat.subscribe(() => undefined));
  await until(() => chat.current.connection.status === "missing");
  await chat.post("Hi");
  await until(() => chat.current.state.items.length === 3);
  assert.deepEqual([chat.current.pending, chat.current.connection.status], [[], "open"]);
});

test("a message that is sent while a listener looks for its conversation has its turn followed", async (t) => {
  const gateway = await startEmpty(t);
  const chat = client(gateway).conversation("c");
  t.after(chat.subscribe(() => undefined));
  await chat.post("Hi");
  await until(() => chat.current.state.items.length === 3);
});

test("a conversation that is created after a listener is followed, and iterating over one that is missing fails", async (t) => {
  let exists = false;
  const gateway = await start(t, {
    [`GET ${EVENTS}`]: () => (exists ? { json: { events: [], has_more: false } } : missing),
    "POST /api/v1/agent/conversations": () => ((exists = true), { status: 201, json: { id: "c" } }),
  });
  gateway.onStream((stream) => stream.frames(user(1)));
  const chat = client(gateway).conversation("c");
  const following = (async () => {
    for await (const _ of chat.follow());
  })();
  await assert.rejects(following, { code: "conversation_not_found" });
  t.after(chat.subscribe(() => undefined));
  await until(() => chat.current.connection.status === "missing");
  await chat.create();
  await until(() => chat.current.state.items.length === 1);
});

test("a first message that nobody confirmed creates its conversation after a reload", async (t) => {
  const gateway = await startEmpty(t);
  const storage = memoryStorage();
  const away = new Everturn({ url: "http://127.0.0.1:1", limits: { attempts: 1 } }).conversation("c", { storage });
  await assert.rejects(away.post("Hi"), { code: "unreachable" });
  const reloaded = client(gateway).conversation("c", { storage });
  t.after(reloaded.subscribe(() => undefined));
  await until(() => reloaded.current.state.items.length === 3);
  assert.equal(storage.length, 0);
});

test("a first message that is refused says why", async (t) => {
  const gateway = await start(t, {
    [`GET ${EVENTS}`]: () => missing,
    [`POST ${MESSAGES}`]: () => ({ status: 400, json: problem("unknown_agent", 400) }),
  });
  await assert.rejects(client(gateway).conversation("c", { agent: "none" }).ask("Hi"), { code: "unknown_agent" });
});

test("a refused message fails with the gateway's code, and is not sent again", async (t) => {
  const gateway = await start(t, {
    [`POST ${MESSAGES}`]: () => ({ status: 409, json: problem("turn_running", 409) }),
  });
  gateway.onStream((stream) => stream.retry(1));
  const storage = memoryStorage();
  const chat = client(gateway).conversation("c", { storage });
  const sending = (async () => {
    for await (const _ of chat.send("Hi", { onBusy: "reject" }));
  })();
  await assert.rejects(sending, { code: "turn_running", status: 409 });
  assert.equal(chat.current.pending[0]?.error?.code, "turn_running");
  assert.equal(storage.length, 0);
  chat.discard(chat.current.pending[0]!);
  assert.deepEqual(chat.current.pending, []);
});

test("429 and 503 are tried again after Retry-After, 400 is not", async (t) => {
  let count = 0;
  const gateway = await start(t, {
    "GET /api/v1/agent/conversations/c": () => {
      count++;
      if (count === 1) return { status: 503, json: problem("store_unavailable", 503) };
      return count === 2 ? { status: 429, json: problem("rate_limited", 429) } : { json: { id: "c" } };
    },
    "GET /api/v1/agent/conversations/c/execution-status": () => ({ status: 400, json: problem("invalid_id", 400) }),
  });
  const chat = client(gateway).conversation("c");
  assert.deepEqual(await chat.show(), { id: "c" });
  await assert.rejects(chat.status(), { code: "invalid_id", requestId: "r" });
  assert.equal(gateway.requests.length, 4);
});

test("`ask` gives the answer, and throws what ended the turn without one", async (t) => {
  const gateway = await start(t, { [`POST ${MESSAGES}`]: () => accepted });
  gateway.onStream(
    (stream) => stream.frames(user(1), part(2), answer(3), event(4, "complete", { output: { n: 1 } })),
    (stream) => stream.frames(user(5), event(6, "error", { code: "step_limit", message: "Too many steps." })),
  );
  const chat = client(gateway).conversation("c");
  const { content, output } = await chat.ask("Hi");
  assert.deepEqual([content, output], ["Hello.Hello.", { n: 1 }]);
  const failed = client(gateway).conversation("c", { cursor: "4" }).ask("Hi");
  await assert.rejects(failed, (error) => error instanceof TurnError && error.code === "step_limit");
});

test("a message whose turn is long over is found in older pages", async (t) => {
  const row = (at: number, type: string, data: object) => ({
    ...{ id: "", conversation_id: "c", message_id: "msg_1", event_type: type, event_data: data },
    ...{ sequence_number: at, created_at: "2026-11-24T04:00:00.000Z" },
  });
  const rows = [row(1, "user_message", { content: "Hi" }), row(2, "complete", {}), row(3, "context_compacted", {})];
  const gateway = await start(t, {
    [`POST ${MESSAGES}`]: () => ({ ...accepted, json: { ...accepted.json, status: "accepted_before" } }),
    [`GET ${EVENTS}`]: ({ path }) => {
      const query = new URL(path, "http://x").searchParams;
      const older = rows.filter((event) => event.sequence_number < Number(query.get("before")));
      return { json: { events: older.slice(-1), has_more: older.length > 1 } };
    },
  });
  gateway.onStream((stream) => stream.retry(1));
  const chat = client(gateway).conversation("c");
  for await (const _ of chat.send("Hi", { messageId: "mine" }));
  assert.equal(chat.current.hasOlder, false);
  assert.deepEqual(gateway.cursors, ["3"]);
});

test("what is forgotten while older events are on their way leaves no gap", async (t) => {
  const rows = [1, 2, 3].map((at) => ({
    ...{ id: "", conversation_id: "c", message_id: "msg_1", event_type: "user_message", event_data: { content: `${at}` } },
    ...{ sequence_number: at, created_at: "2026-11-24T04:00:00.000Z" },
  }));
  const gateway = await start(t, {
    [`GET ${EVENTS}`]: ({ path }) => {
      const query = new URL(path, "http://x").searchParams;
      const older = rows.filter((event) => event.sequence_number < Number(query.get("before")));
      return { json: { events: older.slice(-Number(query.get("limit"))), has_more: false } };
    },
  });
  gateway.onStream((stream) => stream.retry(1));
  const chat = client(gateway).conversation("c", { history: 2 });
  const contents = () => chat.current.state.items.map((item) => "content" in item && item.content).join();
  t.after(chat.subscribe(() => undefined));
  await until(() => contents() === "2,3");
  const reading = chat.older(1);
  chat.forget(1);
  await reading;
  assert.equal(contents(), "3", "event 1 without event 2 would be a gap");
  assert.ok(chat.current.hasOlder);
  await chat.older(2);
  assert.equal(contents(), "1,2,3");

  const small = client(gateway, { limits: { events: 2 } }).conversation("c", { history: 2 });
  t.after(small.subscribe(() => undefined));
  await until(() => small.current.isFull);
  assert.equal(await small.older(), false, "no more are kept");
  assert.ok(small.current.hasOlder);
});

test("paths cannot be left through an id, and keys come from a function", async (t) => {
  const gateway = await start(t, {});
  const everturn = client(gateway, { key: async () => "fresh" });
  await assert.rejects(everturn.conversation("../../auth/session?x=1#").show(), { code: "not_found" });
  assert.equal(gateway.requests[0]?.path, "/api/v1/agent/conversations/..%2F..%2Fauth%2Fsession%3Fx%3D1%23");
  assert.equal(gateway.requests[0]?.headers.authorization, "Bearer fresh");
  for (const id of ["", ".", ".."]) assert.throws(() => everturn.conversation(id), { code: "invalid_id" });
  await assert.rejects(everturn.download(".."), { code: "invalid_id" });
});

test("a question is answered with a value or with a text, accepted without an answer, or declined", async () => {
  const bodies: string[] = [];
  const seen: typeof fetch = async (_, init) => (bodies.push(String(init?.body)), Response.json({ decision: "approved" }));
  const chat = new Everturn({ url: "http://gateway", fetch: seen }).conversation("c");
  const schema = { type: "object", properties: { count: { type: "integer" } } };
  const state = reduce([
    user(1),
    event(2, "act", { execution_id: "exec_1", tool_name: "book", tool_input: {} }),
    event(3, "approval_requested", { execution_id: "exec_1", input_hash: "h", question: { message: "How many?", schema } }),
  ]);
  assert.equal(state.status, "waiting");
  const [call] = pendingApprovals(state);
  assert.deepEqual(call?.approval?.question, { message: "How many?", schema });
  await chat.approve(call!, { answer: { count: 2 } });
  await chat.approve(call!, { answerText: '{"count":9007199254740993}' });
  await chat.approve(call!);
  await chat.deny(call!);
  assert.deepEqual(bodies, [
    '{"input_hash":"h","decision":"approve","answer":{"count":2}}',
    '{"answer":{"count":9007199254740993},"input_hash":"h","decision":"approve"}',
    '{"input_hash":"h","decision":"approve"}',
    '{"input_hash":"h","decision":"deny"}',
  ]);
  for (const answerText of ["{", '{},"remember":true', ""]) await assert.rejects(chat.approve(call!, { answerText }), SyntaxError);
  assert.equal(bodies.length, 4);
});

test("conversations are listed page by page", async (t) => {
  const gateway = await start(t, {
    "GET /api/v1/agent/conversations": ({ path }) => {
      const isSecond = path.includes("before=p2");
      return { json: { conversations: [{ id: isSecond ? "b" : "a" }], next_before: isSecond ? null : "p2" } };
    },
  });
  const ids = [];
  for await (const { id } of client(gateway).conversations({ search: "x y" })) ids.push(id);
  assert.deepEqual(ids, ["a", "b"]);
  assert.ok(gateway.requests.every(({ path }) => path.includes("search=x+y")));
});

test("an answer past the limit, and one that is no JSON, are errors", async (t) => {
  const gateway = await start(t, { "GET /api/v1/agent/conversations/c": () => ({ json: { title: "x".repeat(2000) } }) });
  const small = client(gateway, { limits: { answerBytes: 1000 } });
  await assert.rejects(small.conversation("c").show(), { code: "answer_too_large" });
  const other = new Everturn({ url: gateway.url, fetch: async () => new Response("<html>", { status: 200 }) });
  await assert.rejects(other.conversation("c").show(), { code: "unexpected_answer" });
});
