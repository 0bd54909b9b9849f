/** Calls of models that their provider has refused, and that are made again later. */

import type { ModelWait, TurnRow } from "everturn-client";
import { serverNow } from "./clock";
import { texts } from "./texts";

/** When each wait was first seen, in the gateway's time. */
const seen = new WeakMap<ModelWait, number>();

/** What the provider says, and when the next try is. */
export function refusedText(wait: ModelWait, now: number): string {
  const since = seen.get(wait) ?? serverNow();
  seen.set(wait, since);
  const seconds = Math.ceil(Math.max(0, since + wait.retryAfterMs - now) / 1000);
  return texts.activity.refused(wait.code, seconds, wait.attempt);
}

/** The wait of an LLM call that runs. Only rows of sub-agents name their agent execution. */
export function waitOf(row: TurnRow, rows: readonly TurnRow[], waits: readonly ModelWait[] = []): ModelWait | undefined {
  if (row.kind !== "llm_call" || row.state !== "running") return undefined;
  const { agentExecutionId } = row;
  if (agentExecutionId !== undefined) return waits.findLast((wait) => wait.agentExecutionId === agentExecutionId);
  const ofSubAgents = new Set(rows.map((other) => other.agentExecutionId));
  return waits.findLast((wait) => !ofSubAgents.has(wait.agentExecutionId));
}
