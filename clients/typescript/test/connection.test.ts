/** When a reader comes back, after which pause, and when not: on the shared cases, and against a raw HTTP server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, Everturn, type EverturnError } from "../src/index.js";
import { nextStep, type Outcome } from "../src/wire/step.js";
import { FakeGateway } from "./support/server.js";
import { readShared } from "./support/transcripts.js";

interface Case {
  about: string;
  outcome: Outcome;
  failures: number;
  retryMs: number;
  random: number;
  step: object;
}

for (const { about, outcome, failures, retryMs, random, step } of readShared("connection.json") as Case[]) {
  test(about, () => assert.deepEqual(nextStep(outcome, { failures, retryMs }, random), step));
}

const LIMITS = { silenceMs: 300, connections: 5, attempts: 2, requestMs: 2000 };

function client(gateway: FakeGateway, limits = {}) {
  return new Everturn({ url: gateway.url, key: "secret", limits: { ...LIMITS, ...limits } });
}

const thought = (sequence_number: number, text = "x") => ({
  id: `${sequence_number}-abc`,
  data: { type: "thought", thought: text, sequence_number },
});
const END = { data: { type: "end", reason: "turn_ended", reconnect: false } };

test("a cut in the middle of a frame, and in the middle of a sign, loses and doubles nothing", async (t) => {
  const gateway = await FakeGateway.start(t);
  const second = Buffer.from(FakeGateway.frame(thought(2, "zwölf 🧀")));
  gateway.onStream(
    (stream) => stream.retry(1).frames(thought(1)).bytes(second.subarray(0, second.length - 7)).cut(),
    (stream) => stream.frames(thought(2, "zwölf 🧀"), thought(3), END).close(),
  );
  const chat = client(gateway).conversation("c", { cursor: "0" });
  for await (const _ of chat.follow());
  const contents = chat.current.state.items.map((item) => "content" in item && item.content);
  assert.deepEqual(contents, ["x", "zwölf 🧀", "x"]);
  assert.deepEqual(gateway.cursors, ["0", "1-abc"]);
  assert.equal(gateway.requests[0]?.headers.authorization, "Bearer secret");
});

test("`reconnect` is obeyed, `end` is final, and a response that just ends is a cut", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream(
    (stream) => stream.retry(60_000).frames(thought(1), { data: { type: "reconnect", delay_ms: 30 } }).close(),
    (stream) => stream.retry(1).frames(thought(2)).close(),
    (stream) => stream.frames(END).close(),
  );
  const chat = client(gateway).conversation("c", { cursor: "0" });
  for await (const _ of chat.follow());
  assert.deepEqual(gateway.cursors, ["0", "1-abc", "2-abc"]);
  assert.equal(chat.current.state.ended, "turn_ended");
});

test("an expired token ends the stream, unless there is a function that gets another one", async (t) => {
  const gateway = await FakeGateway.start(t);
  const expired = { data: { type: "end", reason: "token_expired", reconnect: false } };
  gateway.onStream(
    (stream) => stream.frames(thought(1), expired).close(),
    (stream) => stream.frames(expired).close(),
    (stream) => stream.frames(thought(2), END).close(),
  );
  const chat = client(gateway).conversation("c", { cursor: "0" });
  for await (const _ of chat.follow());
  assert.equal(chat.current.state.ended, "token_expired");
  let keys = 0;
  const renewing = new Everturn({ url: gateway.url, key: () => `key ${++keys}` }).conversation("c", { cursor: "1-abc" });
  for await (const _ of renewing.follow());
  assert.equal(renewing.current.state.ended, "turn_ended");
  assert.equal(gateway.requests.at(-1)?.headers.authorization, "Bearer key 2");
});

test("a stream without a byte is dead, and comments keep one alive", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream(
    (stream) => stream.retry(1).frames(thought(1)), // and then nothing
    (stream) => stream.frames(thought(2)).comments(50, 12, () => stream.frames(END).close()),
  );
  const chat = client(gateway).conversation("c", { cursor: "0" });
  for await (const _ of chat.follow());
  assert.deepEqual(gateway.cursors, ["0", "1-abc"], "600 ms of comments are no silence");
});

test("503 and a broken connection pass, and people are told", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream(
    (stream) => stream.retry(1).cut(),
    (stream) => stream.problem(503, "shutting_down", { "retry-after": "0" }),
    (stream) => stream.cut(),
    (stream) => stream.status(502, "Bad gateway"),
    (stream) => stream.frames(thought(1), END).close(),
  );
  const seen = new Set<string>();
  const chat = client(gateway).conversation("c", { cursor: "0" });
  for await (const { connection } of chat.follow()) seen.add(connection.status);
  assert.equal(chat.current.state.cursor, "1-abc");
  assert.ok(seen.has("waiting"), [...seen].join());
});

test("a refusal stops the reader with the gateway's code, sentence and page", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream((stream) => stream.problem(403, "insufficient_scope"));
  const chat = client(gateway).conversation("c", { cursor: "0" });
  const error = await drain(chat.follow()).catch((it: unknown) => it);
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.code, "insufficient_scope");
  assert.equal(error.status, 403);
  assert.equal(error.message, "A sentence for people.");
  assert.deepEqual(chat.current.connection, { status: "closed", error });
  assert.equal(error.docs, `${gateway.url}/docs/errors/insufficient_scope`);
});

async function drain(updates: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of updates);
}

test("nobody there is an error in the end", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream();
  const chat = client(gateway, { connections: 2 }).conversation("c", { cursor: "0" });
  await assert.rejects(drain(chat.follow()), (error: EverturnError) => error.code === "unreachable");
});

test("a frame past the limit is an error, and the connection is closed", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream((stream) => stream.frames(thought(1, "x".repeat(5000))));
  const chat = client(gateway, { frameChars: 1000 }).conversation("c", { cursor: "0" });
  await assert.rejects(drain(chat.follow()), { code: "frame_too_large" });
  await gateway.untilIdle();
});

test("a signal and a `break` close the connection at once", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.onStream(
    (stream) => stream.frames(thought(1)),
    (stream) => stream.frames(thought(2)),
  );
  const chat = client(gateway, { silenceMs: 60_000 }).conversation("c", { cursor: "0" });
  for await (const { state } of chat.follow()) if (state.items.length > 0) break;
  await gateway.untilIdle();
  const controller = new AbortController();
  const following = (async () => {
    for await (const { state } of chat.follow({ signal: controller.signal })) {
      if (state.items.length > 1) controller.abort(new Error("enough"));
    }
  })();
  await assert.rejects(following, { message: "enough" });
  await gateway.untilIdle();
  assert.deepEqual(gateway.cursors, ["0", "1-abc"], "it goes on where it was");
});

test("a slow reader skips what lies between, and sees the end", async (t) => {
  const gateway = await FakeGateway.start(t);
  const many = Array.from({ length: 2000 }, (_, at) => thought(at + 1));
  gateway.onStream((stream) => stream.frames(...many, END).close());
  const chat = client(gateway).conversation("c", { cursor: "0" });
  let updates = 0;
  for await (const _ of chat.follow()) updates++;
  assert.equal(chat.current.state.items.length, 2000);
  assert.ok(updates < 500, `${updates} updates for 2000 frames`);
});
