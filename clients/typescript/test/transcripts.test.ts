/** The shared transcripts: every one ends in its state, also with cuts at random bytes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject } from "../src/state/fields.js";
import { type Frame, Reducer } from "../src/state/reducer.js";
import { answerOfTurn } from "../src/state/select.js";
import type { State } from "../src/state/state.js";
import { timeline } from "../src/state/timeline.js";
import { SseParser } from "../src/wire/sse.js";
import { Gateway } from "./support/gateway.js";
import { randomNumbers, SEED } from "./support/random.js";
import { rendered, type Step, transcripts } from "./support/transcripts.js";

const CUTS = 500;

/** A connection: what it has delivered goes into the reducer. */
class Reader {
  readonly reducer: Reducer;
  readonly #parser = new SseParser(1_000_000);

  constructor(reducer: Reducer) {
    this.reducer = reducer;
  }

  push(bytes: Uint8Array): void {
    for (const { id, data } of this.#parser.push(bytes)) {
      const frame = parsed(data);
      if (frame !== undefined) this.reducer.apply(id === undefined ? { data: frame } : { id, data: frame });
    }
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

/** Reads frames as one connection after the other, without further cuts. */
function read(steps: readonly Step[]): State {
  const reducer = new Reducer();
  let reader = new Reader(reducer);
  for (const step of steps) {
    if (step.cut) reader = new Reader(reducer);
    else reader.push(Buffer.from(rendered(step)));
  }
  return reducer.state;
}

/** Reads frames, and cuts the connection at random bytes. What happens meanwhile comes with the next one. */
function readWithCuts(steps: readonly Step[], random: (below: number) => number): State {
  const gateway = new Gateway();
  const reducer = new Reducer();
  let [at, cuts, reader] = [0, 1 + random(4), new Reader(reducer)];
  while (at < steps.length) {
    const run = cuts > 0 ? random(steps.length - at) : steps.length - at;
    for (const step of steps.slice(at, at + run)) {
      gateway.take(step);
      if (step.cut) reader = new Reader(reducer);
      else pushInPieces(reader, Buffer.from(rendered(step)), random);
    }
    at += run;
    if (cuts-- <= 0) continue;
    const half = steps[at];
    if (half && !half.cut) {
      const bytes = Buffer.from(rendered(half));
      pushInPieces(reader, bytes.subarray(0, random(bytes.length)), random);
    }
    // Some of what follows happens while nobody is connected, but never the end of the stream.
    const away = random(Math.min(steps.length - at, 20) + 1);
    for (const step of steps.slice(at, at + away)) {
      if (isObject(step.data) && step.data["type"] === "end") break;
      gateway.take(step);
      at++;
    }
    reader = new Reader(reducer);
    const beginning = gateway.connect(reducer.state.cursor);
    for (const step of beginning) pushInPieces(reader, Buffer.from(rendered(step)), random);
  }
  return reducer.state;
}

function pushInPieces(reader: Reader, bytes: Buffer, random: (below: number) => number): void {
  for (let from = 0; from < bytes.length; ) {
    const to = from + 1 + random(bytes.length);
    reader.push(bytes.subarray(from, to));
    from = to;
  }
}

for (const [name, { about, frames, state, answers, timeline: ofApi }] of transcripts()) {
  test(`${name}: ${about}`, () => {
    const seen = read(frames);
    assert.deepEqual(seen, state);
    const messages = seen.items.filter((item) => item.type === "user_message");
    const answered = messages.map(({ id }) => [id, answerOfTurn(seen.items, id) ?? null]);
    assert.deepEqual(Object.fromEntries(answered), answers);
    if (ofApi) assert.deepEqual(timeline(seen.items), ofApi, "the API's timeline");
  });

  test(`${name}: with cuts`, () => {
    for (let run = 0; run < CUTS; run++) {
      const seed = SEED + run;
      assert.deepEqual(readWithCuts(frames, randomNumbers(seed)), state, `EVERTURN_SEED=${seed} repeats it`);
    }
  });
}

test("a page of older events is the same as having read them", () => {
  for (const [name, { frames, state }] of transcripts()) {
    const events = frames.filter(isEvent);
    if (name === "unknown.json" || frames.some((frame) => isObject(frame.data) && frame.data["type"] === "reset")) continue;
    for (let from = 0; from <= events.length; from++) {
      const [older, newer] = [events.slice(0, from), events.slice(from)];
      const reducer = new Reducer({ cursor: String(from) });
      for (const frame of newer) reducer.apply(frame as Frame);
      reducer.prepend(older.slice(Math.floor(from / 2)).map((frame) => frame.data as never));
      reducer.prepend(older.map((frame) => frame.data as never));
      assert.deepEqual(reducer.state.items, state.items, `${name} from ${from}`);
    }
  }
});

function isEvent(step: Step): boolean {
  return isObject(step.data) && typeof step.data["sequence_number"] === "number";
}

test("a reducer keeps no more events than it may", () => {
  const reducer = new Reducer({ maxEvents: 100 });
  const event = (sequence_number: number) => ({ type: "thought", thought: "x", sequence_number });
  for (let number = 1; number <= 1000; number++) reducer.apply({ data: event(number) });
  const { items, cursor } = reducer.state;
  assert.equal(cursor, "1000");
  assert.ok(items.length <= 100 && items.length >= 90, `${items.length} items`);
  assert.equal(reducer.firstSequence, items[0]?.sequenceNumber);
});

test("a reducer keeps no more characters than it may, but one event", () => {
  const reducer = new Reducer({ maxChars: 10_000 });
  const apply = (sequence_number: number, length: number) =>
    reducer.apply({ data: { type: "thought", thought: "x".repeat(length), sequence_number } });
  for (let number = 1; number <= 50; number++) {
    apply(number, 1000);
    const shown = reducer.state.items.reduce((sum, item) => sum + ("content" in item ? item.content.length : 0), 0);
    assert.ok(shown <= 10_000 && shown >= Math.min(number, 7) * 1000, `${shown} characters`);
  }
  assert.ok(!reducer.isFull);
  apply(51, 50_000);
  assert.deepEqual(reducer.state.items.map((item) => item.sequenceNumber), [51]);
  assert.ok(reducer.isFull);
});

test("older events are read in steps, whatever comes between them", () => {
  const event = (sequence_number: number) => ({ type: "thought", thought: "x", sequence_number });
  const numbers = (reducer: Reducer) => reducer.state.items.map((item) => item.sequenceNumber);
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  const begin = () => {
    const reducer = new Reducer({ cursor: "3000" });
    reducer.apply({ data: event(3001) });
    const steps = reducer.prependInSteps(range(1, 3000).map(event));
    assert.equal(steps.next().done, false);
    return { reducer, steps };
  };
  const withEvents = begin();
  withEvents.reducer.apply({ data: event(3002) });
  assert.deepEqual(numbers(withEvents.reducer), [3001, 3002], "the state is the one from before");
  assert.deepEqual([...withEvents.steps].length, 2);
  assert.deepEqual(numbers(withEvents.reducer), range(1, 3002));

  const withReset = begin();
  withReset.reducer.apply({ data: { type: "reset", from_sequence: 3001 } });
  withReset.reducer.apply({ data: event(3001) });
  for (const _ of withReset.steps);
  assert.deepEqual(numbers(withReset.reducer), range(1, 3001));

  const withForgetting = begin();
  for (const number of [3002, 3003]) withForgetting.reducer.apply({ data: event(number) });
  withForgetting.reducer.keepLast(1);
  for (const _ of withForgetting.steps);
  assert.deepEqual(numbers(withForgetting.reducer), [3003], "there is no gap");

  const withOthers = begin();
  withOthers.reducer.prepend(range(1, 3000).map(event));
  for (const _ of withOthers.steps);
  assert.deepEqual(numbers(withOthers.reducer), range(1, 3001), "nothing is there twice");
});

test("what was forgotten can be read again", () => {
  for (const [name, { frames, state }] of transcripts()) {
    const events = frames.filter(isEvent);
    if (name === "unknown.json" || frames.some((frame) => isObject(frame.data) && frame.data["type"] === "reset")) continue;
    const reducer = new Reducer();
    for (const frame of events) reducer.apply(frame as Frame);
    reducer.keepLast(0);
    assert.equal(reducer.firstSequence, reducer.lastSequence, `${name}: one event is kept`);
    assert.equal(reducer.state.cursor, state.cursor);
    reducer.prepend(events.map((frame) => frame.data as never));
    assert.deepEqual(reducer.state.items, state.items, name);
  }
});

test("a wait lasts until its model writes", () => {
  const reducer = new Reducer();
  const wait = (agent: string, attempt: number) => ({
    ...{ type: "model_waiting", message_id: "m", agent_execution_id: agent, step: 0, code: "llm_overloaded" },
    ...{ message: "It is busy.", attempt, retry_after_ms: 12_000 },
  });
  for (const data of [wait("run_1", 2), wait("run_2", 2), wait("run_1", 4)]) assert.ok(reducer.apply({ data }));
  const { waits } = reducer.state;
  assert.deepEqual(waits?.map(({ attempt }) => attempt), [2, 4]);
  assert.equal(waits?.[1]?.retryAfterMs, 12_000);
  const text = { type: "text_start", agent_execution_id: "run_1", step: 0, part: "text", generation: 4 };
  assert.ok(reducer.apply({ data: text }));
  assert.equal(reducer.state.waits?.length, 1);
  assert.ok(reducer.apply({ data: { type: "replay" } }));
  assert.equal(reducer.state.waits, undefined);
});

test("progress lasts until the result", () => {
  const reducer = new Reducer();
  const report = (execution: string, message: string, more = {}) => ({
    ...{ type: "tool_progress", message_id: "m", agent_execution_id: "run_1", execution_id: execution },
    ...{ tool_name: "copy", progress: 0.5, message, ...more },
  });
  const reports = [report("exec_1", "one"), report("exec_2", "other"), report("exec_1", "a line", { level: "info" }), report("exec_1", "two")];
  for (const data of reports) assert.ok(reducer.apply({ data }));
  assert.ok(!reducer.apply({ data: report("", "no execution") }));
  const shown = () => reducer.state.progress?.map(({ message }) => message);
  assert.deepEqual(shown(), ["other", "a line", "two"]);
  const observe = { type: "observe", sequence_number: 1, message_id: "m", agent_execution_id: "run_1", execution_id: "exec_1" };
  assert.ok(reducer.apply({ data: { ...observe, tool_name: "copy", result: 1 } }));
  assert.deepEqual(shown(), ["other"]);
  assert.ok(reducer.apply({ data: { type: "replay" } }));
  assert.equal(shown(), undefined);
});

test("what has not changed stays the same object", () => {
  const reducer = new Reducer();
  reducer.apply({ data: { type: "user_message", content: "a", message_id: "m", sequence_number: 1 } });
  const before = reducer.state;
  assert.equal(reducer.state, before);
  reducer.apply({ data: { type: "from_the_future" } });
  assert.equal(reducer.state, before);
  reducer.apply({ data: { type: "thought", thought: "b", sequence_number: 2 } });
  assert.notEqual(reducer.state, before);
  assert.equal(before.items.length, 1, "a state that was given out does not change");
  assert.equal(reducer.state.items[0], before.items[0]);
  const { items } = reducer.state;
  const start = { type: "text_start", agent_execution_id: "run", step: 1, part: "text", generation: 1, text: "Hello" };
  assert.ok(reducer.apply({ data: start }));
  assert.equal(reducer.state.items, items, "texts come often, and leave the items as they are");
});
