/** Events written into the database of `everturn dev`: a long conversation in a second, and events of earlier releases. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

/** An event to be written: its type, and its own fields. A `user_message` begins a turn. */
export interface Seed {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Writes these events into the log of a conversation that has none, in the folder of a gateway that runs. The last one is so many days old. */
export function seed(folder: string, conversationId: string, events: readonly Seed[], daysAgo = 0): void {
  const start = Date.parse("2026-01-01T00:00:00Z");
  let message = "";
  const rows = events.map(({ type, data }, at) => {
    const time = new Date(start + 1000 * at).toISOString();
    const statements: string[] = [];
    if (type === "user_message" || message === "") {
      message = String(data["message_id"] ?? `seed-${at}`);
      const values = [conversationId, message, "user", "taken", at + 1, time, "…", "[]", "[]", "default", ""];
      statements.push(
        "INSERT INTO messages (conversation_id, id, role, status, sequence_number, created_at, content, tool_calls, " +
          `tool_results, tenant_id, thread) VALUES (${values.map(literal).join(", ")});`,
      );
    }
    const json = JSON.stringify(data);
    const id = `${conversationId}-${at + 1}`;
    const values = [id, conversationId, message, type, at + 1, id, time, json, Buffer.byteLength(json)];
    statements.push(`INSERT INTO agent_execution_events VALUES (${values.map(literal).join(", ")});`);
    return statements.join("\n");
  });
  const updated = literal(new Date(Date.now() - daysAgo * 86_400_000).toISOString());
  const set = `last_sequence = ${events.length}, updated_at = ${updated}, active_at = ${updated}`;
  const last = `UPDATE conversations SET ${set} WHERE id = ${literal(conversationId)}; UPDATE list_changes SET version = version + 1;`;
  const input = [".bail on", ".timeout 10000", "BEGIN IMMEDIATE;", ...rows, last, "COMMIT;"].join("\n");
  const done = spawnSync("sqlite3", [`${folder}/data/everturn.db`], { input, encoding: "utf8" });
  assert.equal(done.status, 0, `${done.error ?? ""}${done.stderr}`);
}

function literal(value: string | number): string {
  return typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
}

/** The events of a turn with two calls in parallel, a thought, and an answer with a table and code: eight of them. */
export function turn(number: number): Seed[] {
  const agent = { agent_execution_id: `run-${number}`, step: 0 };
  const idsOf = (name: string) => ({ execution_id: `exec-${number}-${name}`, call_id: `call-${number}-${name}`, tool_name: name });
  const act = (name: string, tool_input: object): Seed => ({ type: "act", data: { ...idsOf(name), tool_input, ...agent } });
  const observe = (name: string, result: unknown, duration_ms: number, is_error = false): Seed => ({
    type: "observe",
    data: { ...idsOf(name), result, duration_ms, is_error, ...agent },
  });
  const usage = { input_tokens: 1000 + number, output_tokens: 50, cached_tokens: 0, cache_write_tokens: 0 };
  const question = `Question ${number}. ${"Some words more. ".repeat(number % 7)}`;
  const last = { ...agent, step: 1, finish: "stop" };
  return [
    { type: "user_message", data: { content: question, message_id: `message-${number}` } },
    { type: "thought", data: { reasoning: `I think about question ${number}.`, ...agent } },
    act("search", { query: `question ${number}` }),
    act("read", { page: number }),
    observe("search", { found: number, text: "A line of it. ".repeat(20) }, 12),
    observe("read", "A page. ".repeat(50), 1200, number % 9 === 0),
    { type: "assistant_message", data: { content: answer(number), message_id: `answer-${number}`, ...last } },
    { type: "complete", data: { steps: 2, usage, cost_usd: "0.0021", ...last } },
  ];
}

/** The answer of such a turn. */
export function answer(number: number): string {
  const parts = [`Answer ${number}: the **result** is \`${number * 2}\`.`];
  if (number % 2 === 0) parts.push("- one thing\n- [another](https://example.com/)\n- [x] a third");
  if (number % 3 === 0) parts.push(`\`\`\`python\ndef answer(question):  # ${number}\n    return "${number}" * 2\n\`\`\``);
  if (number % 5 === 0) parts.push("| name | count |\n|---|---:|\n| a | 1 |\n| b | 22 |");
  if (number % 4 === 1) parts.push("A paragraph of an answer, with some words in it. ".repeat(8));
  return parts.join("\n\n");
}
