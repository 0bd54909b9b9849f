/** Where the time of turns went (clients/transcripts/waterfalls.json). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Frame, reduce, type TurnRows, turnRows } from "../src/index.js";
import { readShared } from "./support/transcripts.js";

interface Waterfall {
  readonly about: string;
  readonly events: readonly Frame["data"][];
  readonly turns: readonly TurnRows[];
}

for (const { about, events, turns } of readShared("waterfalls.json") as Waterfall[]) {
  test(about, () => {
    const state = reduce(events.map((data) => ({ data })));
    assert.deepEqual(turnRows(state.items, state.turn), turns);
  });
}

test("a turn of ten thousand events is quick", () => {
  const created_at = "2026-11-24T04:00:00Z";
  const events = Array.from({ length: 10_000 }, (_, at) => {
    const of = { sequence_number: at + 1, created_at, message_id: "msg_1", agent_execution_id: "run_1" };
    if (at === 0) return { ...of, type: "user_message", content: "Go." };
    const call = { tool_name: "search", execution_id: `e${(at + 1) >> 1}` };
    return at % 2 === 1 ? { ...of, ...call, type: "act", step: at } : { ...of, ...call, type: "observe", duration_ms: 1 };
  });
  const { items, turn } = reduce(events.map((data) => ({ data })));
  const began = performance.now();
  assert.equal(turnRows(items, turn)[0]?.rows.length, 10_000);
  assert.ok(performance.now() - began < 1000, "a page draws it again with each event");
});
