/** What of a turn's times only somebody who watches knows. */

import type { TurnRow, TurnRows, Update } from "everturn-client";
import { useRef } from "preact/hooks";
import { serverNow } from "../clock";

/** The key of an LLM call: the sub-agent, if it is one, and the step. */
export function callKey({ agentExecutionId, step }: Pick<TurnRow, "agentExecutionId" | "step">): string {
  return `${agentExecutionId ?? ""}/${step ?? 0}`;
}

/**
 * When the first text of each LLM call of this turn was seen, by `callKey`. It is known of calls alone that were seen before
 * they had a text: texts are not stored, and whoever connects in the middle gets all that there is at once.
 */
export function useFirstTexts({ state }: Update, turn: TurnRows): ReadonlyMap<string, number> {
  const seen = useRef(new Map<string, number>());
  const waiting = useRef(new Set<string>());
  for (const text of state.texts) {
    if (text.messageId !== turn.id) continue;
    const ofSubAgent = text.parentToolCallId === undefined ? undefined : text.agentExecutionId;
    const key = callKey({ agentExecutionId: ofSubAgent, step: text.step } as TurnRow);
    if (waiting.current.delete(key)) seen.current.set(key, serverNow());
    else if (!seen.current.has(key)) seen.current.set(key, 0);
  }
  for (const row of turn.rows) {
    const key = callKey(row);
    if (row.kind === "llm_call" && row.state === "running" && !seen.current.has(key)) waiting.current.add(key);
  }
  return seen.current;
}
