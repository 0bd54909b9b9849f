/** The part of the API's timeline that every client can make of its state. */

import { present } from "./fields.js";
import type { Item, ToolCall } from "./state.js";
import type { TimelineItem } from "../api.js";

/**
 * Makes of items what `GET …/messages` answers for the same events: messages, thoughts, tool calls and their results. The API's
 * timeline also has items of other types, and other fields.
 */
export function timeline(items: readonly Item[]): TimelineItem[] {
  const shown = items.flatMap(entries);
  return shown.sort((one, other) => one.sequenceNumber - other.sequenceNumber);
}

function entries(item: Item): TimelineItem[] {
  const { id, sequenceNumber, timestamp, agentExecutionId, parentToolCallId } = item;
  const of = { agentExecutionId, parentToolCallId };
  const entry = (fields: object) =>
    present<TimelineItem>({ id, sequenceNumber, timestamp, ...of, ...fields } as TimelineItem);
  switch (item.type) {
    case "user_message":
      return [entry({ type: item.type, content: item.content, attachments: item.attachments, retryOf: item.retryOf })];
    case "thought":
      return [entry({ type: item.type, content: item.content, reasoning: item.reasoning, citations: item.citations })];
    case "assistant_message":
      return [entry({ type: item.type, content: item.content, citations: item.citations })];
    case "tool_call":
      return [entry({ type: item.type, ...ofTool(item), title: item.title, toolInput: item.toolInput }), ...result(item, entry)];
    case "tool_result":
      return [entry({ type: item.type, ...ofTool(item), toolOutput: item.toolOutput, isError: item.isError })];
    case "work_plan":
    case "note":
    case "end":
      return [];
  }
}

function ofTool({ toolName, executionId, callId }: Pick<ToolCall, "toolName" | "executionId" | "callId">) {
  return { toolName, executionId, callId };
}

function result(call: ToolCall, entry: (fields: object) => TimelineItem): TimelineItem[] {
  if (call.resultSequenceNumber === undefined) return [];
  const { toolOutput, isError, resultSequenceNumber, resultTimestamp } = call;
  const place = {
    id: `observe-${resultSequenceNumber}`,
    sequenceNumber: resultSequenceNumber,
    timestamp: resultTimestamp,
  };
  return [entry({ ...place, type: "tool_result", ...ofTool(call), toolOutput, isError })];
}
