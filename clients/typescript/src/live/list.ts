/** The list of conversations, as it changes. */

import type { ListedConversation } from "../api.js";
import type { Http } from "../http.js";
import { isObject } from "../state/fields.js";
import { type Connection, streamFrames } from "../wire/stream.js";

/** Yields the list after each change, the conversation that was updated last first. */
export async function* followList(
  http: Http,
  { signal, onConnection }: { signal?: AbortSignal; onConnection?: (connection: Connection) => void },
): AsyncGenerator<readonly ListedConversation[], void> {
  const stop = new AbortController();
  const conversations = new Map<string, ListedConversation>();
  const frames = streamFrames(http, {
    path: "/agent/conversation-list/stream",
    signal: signal ?? stop.signal,
    ...(onConnection === undefined ? {} : { onConnection }),
  });
  for await (const { data } of frames) {
    if (change(conversations, data)) yield [...conversations.values()].sort(newestFirst);
  }
}

/** Applies a frame. False when it changes nothing, like one that is not known. */
function change(conversations: Map<string, ListedConversation>, data: unknown): boolean {
  if (!isObject(data)) return false;
  switch (data["type"]) {
    case "list":
      conversations.clear();
      for (const one of data["conversations"] as ListedConversation[]) conversations.set(one.id, one);
      return true;
    case "conversation_changed": {
      const changed = data["conversation"] as ListedConversation;
      conversations.set(changed.id, changed);
      return true;
    }
    case "conversation_removed":
      return conversations.delete(String(data["conversation_id"]));
    default:
      return false;
  }
}

function newestFirst(one: ListedConversation, other: ListedConversation): number {
  return Date.parse(other.updated_at) - Date.parse(one.updated_at) || (one.id < other.id ? 1 : -1);
}
