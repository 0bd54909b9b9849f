/** Questions to a state. */

import type { End, Item, State, ToolCall } from "./state.js";

/** The end of the turn that took a message; undefined while it has not ended, or is not known. */
export function endOfTurn(items: readonly Item[], messageId: string): End | undefined {
  const at = items.findLastIndex((item) => item.id === messageId);
  const turn = items[at]?.turn;
  if (turn === undefined) return undefined;
  return items.slice(at).find((item): item is End => isEndOf(item, turn));
}

function isEndOf(item: Item, turn: string): boolean {
  return item.type === "end" && item.turn === turn && item.agentExecutionId === undefined;
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
