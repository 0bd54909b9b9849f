/** What the turn that runs waits for: a person, a client, tools, or the model. */

import { type Item, type ModelWait, type ToolCall, type TurnRow, turnRows, type Update } from "everturn-client";
import { useMemo } from "preact/hooks";
import { Clock, useNow } from "./clock";
import { progressText } from "./progress";
import { refusedText } from "./refused";
import { visible } from "./shown";
import { texts } from "./texts";
import { askedOf } from "./tool";

/** Tools that are named. */
const MOST_NAMED = 3;

/** A sentence with a clock, for as long as a turn runs. */
export function Activity({ update: { state, connection } }: { update: Update }) {
  const { items, turn } = state;
  const waits = useMemo(() => (turn === null ? [] : waitsOf(items, turn)), [items, turn]);
  if (turn === null || waits.length === 0 || connection.status !== "open") return null;
  const isWriting = state.texts.some(({ ended }) => !ended);
  const refused = state.waits?.at(-1);
  if (refused && !isWriting) return <p class="activity"><Refused wait={refused} /></p>;
  // A tool may report a step a second, which no screen reader wants to read out.
  const report = state.progress?.at(-1);
  const since = Math.min(...waits.map(({ started }) => started));
  return (
    <p class="activity">
      <span role="status">{sentences(waits, items, isWriting).join(" · ")}</span>
      {report && <span class="hint" data-progress={report.executionId}><bdi>{progressText(report)}</bdi></span>}
      {since > 0 && <Clock since={since} />}
    </p>
  );
}

/** A provider has refused a call, which is made again after a while. */
function Refused({ wait }: { wait: ModelWait }) {
  return <span role="status" title={visible(wait.message)}>{refusedText(wait, useNow(true))}</span>;
}

/** What runs now. What a sub-agent does stands for the call that started the sub-agent. */
function waitsOf(items: readonly Item[], turn: string): TurnRow[] {
  const own = items.filter((item) => item.turn === turn);
  const rows = turnRows(own, turn).flatMap((found) => found.rows);
  const running = rows.filter(({ state }) => state === "running");
  const inner = running.filter(({ agent }) => agent === undefined);
  return inner.length > 0 ? inner : running;
}

/** A person comes first: nobody else can go on before an answer. */
function sentences(waits: readonly TurnRow[], items: readonly Item[], isWriting: boolean): string[] {
  const ids = new Set(waits.map(({ item }) => item));
  const calls = items.filter((item): item is ToolCall => item.type === "tool_call" && ids.has(item.id));
  const of = (asked: ReturnType<typeof askedOf>) => calls.filter((call) => askedOf(call) === asked);
  const [asked, clients, tools] = [of("approval"), of("client"), of(undefined)];
  const approvals = asked.filter(({ approval }) => approval?.question === undefined);
  const questions = asked.length - approvals.length;
  const found: string[] = [];
  if (approvals.length > 0) found.push(texts.activity.approval(approvals.length));
  if (questions > 0) found.push(texts.activity.question(questions));
  if (clients.length > 0) found.push(texts.activity.client(namesOf(clients)));
  if (tools.length > 0) found.push(texts.activity.tools(namesOf(tools), tools.length));
  if (waits.some(({ kind }) => kind === "llm_call")) found.push(isWriting ? texts.activity.writes : texts.activity.model);
  return found;
}

function namesOf(calls: readonly ToolCall[]): string {
  const names = [...new Set(calls.map(({ toolName }) => visible(toolName)))];
  const more = names.length - MOST_NAMED;
  const named = names.slice(0, MOST_NAMED).join(", ");
  return more > 0 ? `${named} ${texts.andMore(more)}` : named;
}
