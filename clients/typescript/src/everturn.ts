/** The door: a client of one installation of Everturn, with the rights of one key. */

import type {
  AgentList,
  Blob as StoredBlob,
  Conversation as ConversationRow,
  InboxApproval,
  ListedConversation,
  NewConversation,
  Session,
} from "./api.js";
import { bindMethods } from "./bound.js";
import { Conversation, type ConversationOptions } from "./conversation.js";
import { Http, path } from "./http.js";
import { newId } from "./ids.js";
import { type InboxOptions, listApprovals } from "./live/inbox.js";
import { followList, type FollowListOptions, listConversations, type ListOptions } from "./live/list.js";
import type { EverturnOptions } from "./options.js";

/** A client of Everturn. It holds no connection; a conversation does, while it is followed. Its methods are bound. */
export class Everturn {
  readonly #http: Http;

  constructor(options: EverturnOptions) {
    this.#http = new Http(options);
    bindMethods(this);
  }

  /**
   * A conversation, by its id. Nothing is sent yet; the first message creates a conversation that is missing.
   *
   * @throws {EverturnError} that there can be none with this id.
   */
  conversation(id: string = newId(), options: ConversationOptions = {}): Conversation {
    return new Conversation(this.#http, id, options);
  }

  /** Creates a conversation. One with the same id stays as it is. */
  create(conversation: NewConversation = {}, signal?: AbortSignal): Promise<ConversationRow> {
    const isRepeatable = typeof conversation.id === "string";
    return this.#http.json({ method: "POST", path: "/agent/conversations", json: conversation, isRepeatable, signal });
  }

  /** Lists the agents that conversations may have, and the agent of a conversation that names no agent. */
  agents({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<AgentList> {
    return this.#http.json({ method: "GET", path: "/agent/agents", isRepeatable: true, signal });
  }

  /** Yields conversations, page by page; the one that was updated last comes first. */
  conversations(options: ListOptions = {}): AsyncGenerator<ListedConversation, void> {
    return listConversations(this.#http, options);
  }

  /**
   * Yields the calls of all conversations that wait for an approval, page by page; the nearest deadline comes first. The key
   * needs the scope `approve`. Approve a call with `conversation(call.conversation_id).approve(call)`.
   */
  approvals(options: InboxOptions = {}): AsyncGenerator<InboxApproval, void> {
    return listApprovals(this.#http, options);
  }

  /**
   * Yields the newest conversations, the one that was updated last first, and again after each change: over cuts and
   * reconnections, on one connection for all of them. There are 100 of them at first, and more as old ones change.
   * With `waitingFor`, all conversations that wait for this party are among them, however old.
   *
   * @throws {ApiError} that the gateway refuses the stream.
   */
  followConversations(options: FollowListOptions = {}): AsyncGenerator<readonly ListedConversation[], void> {
    return followList(this.#http, options);
  }

  /** Uploads a file. Name its `blob_id` in the attachments of a message within a day. */
  upload(
    file: Blob | Uint8Array | string,
    options: { mediaType: string; fileName?: string; signal?: AbortSignal },
  ): Promise<StoredBlob> {
    return this.#http.json({
      method: "POST",
      path: "/agent/blobs",
      query: { file_name: options.fileName },
      // The same key again is the same file, so the request may be repeated.
      headers: { "content-type": options.mediaType, "idempotency-key": newId() },
      body: file as NonNullable<RequestInit["body"]>,
      isRepeatable: true,
      signal: options.signal,
    });
  }

  /** The bytes of a file. */
  async download(blobId: string, signal?: AbortSignal): Promise<Uint8Array> {
    return this.#http.bytes({ path: path`/agent/blobs/${blobId}`, isRepeatable: true, signal });
  }

  /** Where the bytes of a file are, for `<img>` and links: browsers ask with the cookie of their session. */
  blobUrl(blobId: string): string {
    return this.#http.address(path`/agent/blobs/${blobId}`);
  }

  /** Who the caller is, and what they may do. */
  session(signal?: AbortSignal): Promise<Session> {
    return this.#http.json({ path: "/auth/session", isRepeatable: true, signal });
  }

  /** In a browser: trades a key or a token for the cookie of a session, which later requests carry by themselves. */
  signIn(key: string, signal?: AbortSignal): Promise<void> {
    const headers = { authorization: `Bearer ${key}` };
    return this.#http.json({ method: "POST", path: "/auth/session", headers, signal });
  }

  /** Ends the session. */
  signOut(signal?: AbortSignal): Promise<void> {
    return this.#http.json({ method: "DELETE", path: "/auth/session", isRepeatable: true, signal });
  }
}
