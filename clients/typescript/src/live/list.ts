/** The list of conversations, as it changes. */

import type { ListedConversation } from "../api.js";
import type { Http } from "../http.js";
import { ConversationList } from "../state/list.js";
import { type Connection, streamFrames } from "../wire/stream.js";

/** Yields the list after each change, the conversation that was updated last first. */
export async function* followList(
  http: Http,
  { signal, onConnection }: { signal?: AbortSignal; onConnection?: (connection: Connection) => void },
): AsyncGenerator<readonly ListedConversation[], void> {
  const stop = new AbortController();
  const list = new ConversationList();
  const frames = streamFrames(http, {
    path: "/agent/conversation-list/stream",
    signal: signal ?? stop.signal,
    ...(onConnection === undefined ? {} : { onConnection }),
  });
  for await (const { data } of frames) {
    if (list.apply(data)) yield list.conversations;
  }
}
