/** The list of conversations, page by page, and as it changes. */

import type { ConversationPage, ListedConversation } from "../api.js";
import type { Http } from "../http.js";
import { ConversationList } from "../state/list.js";
import { isObject } from "../state/fields.js";
import { type Connection, streamFrames } from "../wire/stream.js";

/** The most conversations that are read because they wait. */
const MOST_WAITING = 1000;

/** The party that a call of a conversation waits for. */
export type WaitingFor = "approval" | "client_tool";

/** Which conversations are listed. */
export interface ListOptions {
  /** A part of the title. */
  readonly search?: string;
  readonly agent?: string;
  /** Only conversations with a call that waits for a person (`approval`), or for a client (`client_tool`). */
  readonly waitingFor?: WaitingFor;
  /** Conversations of a page: 1 to 200, by default 50. */
  readonly pageSize?: number;
  readonly signal?: AbortSignal;
}

/** How the list is followed. */
export interface FollowListOptions {
  /** Conversations with a call that waits for this party are read beside the newest ones, up to 1000. */
  readonly waitingFor?: WaitingFor;
  readonly signal?: AbortSignal;
  readonly onConnection?: (connection: Connection) => void;
}

/** Yields conversations page by page, the conversation that was updated last first. */
export async function* listConversations(http: Http, options: ListOptions): AsyncGenerator<ListedConversation, void> {
  const { search, agent, waitingFor: waiting_for, pageSize: limit, signal } = options;
  let before: string | undefined;
  do {
    const query = { search, agent, waiting_for, limit, before };
    const request = { path: "/agent/conversations", query, isRepeatable: true, signal } as const;
    const page: ConversationPage = await http.json(request as never);
    yield* page.conversations;
    before = page.next_before ?? undefined;
  } while (before !== undefined);
}

/** Yields the list after each change, the conversation that was updated last first. */
export async function* followList(
  http: Http,
  { signal, onConnection, waitingFor }: FollowListOptions,
): AsyncGenerator<readonly ListedConversation[], void> {
  const stop = new AbortController();
  const list = new ConversationList();
  const own = signal ?? stop.signal;
  const frames = streamFrames(http, {
    path: "/agent/conversation-list/stream",
    signal: own,
    ...(onConnection === undefined ? {} : { onConnection }),
  });
  for await (const { data } of frames) {
    if (list.apply(data)) yield list.conversations;
    if (waitingFor === undefined || !isObject(data) || data["type"] !== "list") continue;
    // Changes wait behind this frame: each that comes next is newer than what is read here.
    if (await addWaiting(http, list, { waitingFor, signal: own, pageSize: 200 })) yield list.conversations;
  }
}

/** Adds those that wait and are older than the newest ones. True when there are some. */
async function addWaiting(http: Http, list: ConversationList, options: ListOptions): Promise<boolean> {
  let [read, hasAdded] = [0, false];
  for await (const row of listConversations(http, options)) {
    hasAdded = list.add(row) || hasAdded;
    if (++read >= MOST_WAITING) break;
  }
  return hasAdded;
}
