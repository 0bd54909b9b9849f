/** What the API's timeline and the state of every client have in common (`clients/transcripts/README.md`, "The timeline"). */

const TYPES = ["user_message", "thought", "tool_call", "tool_result", "assistant_message"];
const FIELDS = [
  ...["id", "type", "sequenceNumber", "timestamp", "agentExecutionId", "parentToolCallId", "content", "reasoning", "citations", "attachments", "retryOf"],
  ...["toolName", "title", "toolInput", "toolOutput", "isError", "executionId", "callId"],
];

/** The items of the API's timeline that every client can make, with their fields. */
export function common(timeline: readonly { type: string }[]): object[] {
  const items = timeline.filter((item) => TYPES.includes(item.type));
  return items.map((item) => Object.fromEntries(Object.entries(item).filter(([field]) => FIELDS.includes(field))));
}
