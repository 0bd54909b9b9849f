/** The client of the gateway that served the page, and the conversations that were open lately. */

import { type api, type Conversation, Everturn } from "everturn-client";
import { useSyncExternalStore } from "preact/compat";
import { useCallback } from "preact/hooks";
import { serverNow, timedFetch } from "./clock";

/** Events that are read at first, and again with each step backwards. */
export const PAGE = 300;

/** Conversations that are kept, so that one that was left a moment ago is there at once. */
const KEPT = 8;

/** The page may lie below a path, behind a proxy. A page that is open for days keeps trying to connect. */
export const everturn = new Everturn({
  url: new URL(".", location.href).href,
  fetch: timedFetch,
  limits: { connections: Number.MAX_SAFE_INTEGER },
});

const opened = new Map<string, Conversation>();

/** The conversation with this id. */
export function conversation(id: string): Conversation {
  const found = opened.get(id) ?? everturn.conversation(id, { storage: localStorage, history: PAGE });
  opened.delete(id);
  opened.set(id, found);
  const oldest = opened.keys().next().value;
  if (opened.size > KEPT && oldest !== undefined) opened.delete(oldest);
  return found;
}

/** When conversations went. The list's stream tells of the newest conversations, so the list may still have an old one. */
const gone = new Map<string, number>();

/** Forgets a conversation that was removed. */
export function forget(id: string): void {
  opened.delete(id);
  gone.set(id, serverNow());
}

/** True for a conversation that is gone, and was not made anew. */
export function isGone({ id, updated_at: updated }: api.ListedConversation): boolean {
  return Date.parse(updated) <= (gone.get(id) ?? 0);
}

/**
 * Follows a conversation while a component shows it and the tab is live. Another `attempt` follows the conversation again, after
 * a failure.
 */
export function useUpdate(chat: Conversation, attempt: number, isLive: boolean) {
  const follow = useCallback(
    (onChange: () => void) => (isLive ? chat.subscribe(onChange) : () => undefined),
    [chat, attempt, isLive],
  );
  return useSyncExternalStore(follow, () => chat.current);
}
