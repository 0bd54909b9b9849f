/** Questions to a state. */

import type { End, Item, State, ToolCall } from "./state.js";

/**
 * The end of the turn that took a message; undefined while it has not ended, or is not known. A message that joined a
 * turn (`steer`) has the end of that turn.
 */
export function endOfTurn(items: readonly Item[], messageId: string): End | undefined {
  const at = items.findLastIndex((item) => item.type === "user_message" && item.id === messageId);
  const turn = at < 0 ? messageId : items[at]?.turn;
  return items.slice(Math.max(at, 0)).find((item): item is End => isEndOf(item, turn));
}

function isEndOf(item: Item, turn: string | undefined): boolean {
  return item.type === "end" && item.turn === turn && item.agentExecutionId === undefined;
}

/**
 * What the turn that took a message has answered; undefined when it has not, or not yet. A provider may have cut the
 * answer into several items: their texts are joined.
 */
export function answerOfTurn(items: readonly Item[], messageId: string): string | undefined {
  const end = endOfTurn(items, messageId);
  if (end?.outcome !== "complete") return undefined;
  const parts: string[] = [];
  for (const item of itemsOfAgent(itemsOfTurn(items, end.turn)).reverse()) {
    if (item.type !== "assistant_message") continue;
    if (parts.length > 0 && item.finish !== "length") break;
    parts.unshift(item.content);
  }
  return parts.join("");
}

/** The items of a turn, those of its sub-agents included. */
export function itemsOfTurn(items: readonly Item[], turn: string | undefined): Item[] {
  return items.filter((item) => item.turn !== undefined && item.turn === turn);
}

/** The items of one agent: of a sub-agent, or of the turns' own agents when none is named. */
export function itemsOfAgent(items: readonly Item[], agentExecutionId?: string): Item[] {
  return items.filter((item) => item.agentExecutionId === agentExecutionId);
}

/** The calls that wait for a person. */
export function pendingApprovals(state: State): ToolCall[] {
  return state.items.filter(
    (item): item is ToolCall =>
      item.type === "tool_call" && item.state === "running" && item.approval?.state === "pending",
  );
}
