/** Messages that were written and are not in the log yet. They are shown at once, and survive a reload. */

import type { AcceptedMessage, NewMessage } from "../api.js";
import { ApiError, EverturnError } from "../errors.js";
import { type Http, path } from "../http.js";
import type { Item } from "../state/state.js";
import { isObject } from "../state/fields.js";
import { keep, keysOf, stored, type TextStorage } from "./storage.js";

/** A message that is not in the log yet. */
export interface PendingMessage {
  /** The client's own id: the same one twice is one message. */
  readonly messageId: string;
  readonly content: string;
  readonly attachments?: NewMessage["attachments"];
  readonly onBusy?: NewMessage["on_busy"];
  readonly model?: NewMessage["model"];
  /** `queued`: it is stored, and waits for its turn. `failed`: send it again with the same id, or discard it. */
  readonly state: "sending" | "queued" | "failed";
  /** The gateway's id, by which events name the message. */
  readonly acceptedAs?: string;
  readonly error?: EverturnError;
}

/** What a message says, and how it is sent. */
export type Outgoing = Pick<PendingMessage, "messageId" | "content" | "attachments" | "onBusy" | "model">;

/** The messages of one conversation that are not in its log yet. */
export class Outbox {
  readonly #http: Http;
  readonly #conversationId: string;
  readonly #storage: TextStorage;
  readonly #first: NonNullable<NewMessage["create"]>;
  readonly #onChange: () => void;
  readonly #onAccepted: () => void;
  #pending: readonly PendingMessage[] = [];
  readonly #onTheirWay = new Set<Promise<unknown>>();

  /** `first` is what the first message makes the conversation of. */
  constructor(
    http: Http,
    conversationId: string,
    storage: TextStorage,
    first: NonNullable<NewMessage["create"]>,
    onChange: () => void,
    onAccepted: () => void,
  ) {
    this.#http = http;
    this.#conversationId = conversationId;
    this.#storage = storage;
    this.#first = first;
    this.#onChange = onChange;
    this.#onAccepted = onAccepted;
  }

  /** The messages, in the order in which they were written. */
  get pending(): readonly PendingMessage[] {
    return this.#pending;
  }

  /**
   * Sends a message, and again until somebody answers. A conversation that is missing is created with it.
   *
   * @throws {EverturnError} that it was refused, or that nobody answered; or the signal's reason. The message is then
   * `failed`.
   */
  async post(message: Outgoing, signal?: AbortSignal): Promise<AcceptedMessage> {
    const others = this.#pending.filter((other) => other.messageId !== message.messageId);
    if (others.length >= this.#http.limits.outbox) {
      throw new EverturnError("outbox_full", `${others.length} messages wait to be sent: send or discard them first.`);
    }
    this.#set([...others, { ...message, state: "sending" }]);
    keep(this.#storage, this.#key(message.messageId), JSON.stringify(message));
    try {
      const accepted = await this.#send(message, signal);
      const isInLog = accepted.status === "accepted_before";
      if (isInLog) this.discard(message.messageId);
      else this.#replace(message.messageId, { ...message, state: "queued", acceptedAs: accepted.message_id });
      return accepted;
    } catch (cause) {
      const error = cause instanceof EverturnError ? cause : new EverturnError("unreachable", String(cause), { cause });
      // What was refused is refused again; what nobody answered may be stored, and is sent again after a reload.
      if (error instanceof ApiError) this.#storage.removeItem(this.#key(message.messageId));
      this.#replace(message.messageId, { ...message, state: "failed", error });
      throw cause;
    }
  }

  /** Sends again what was not confirmed before the page was loaded. Those that are in the log are left out. */
  async restore(): Promise<void> {
    const prefix = this.#key("");
    const found = keysOf(this.#storage, prefix).map((key) => stored(this.#storage, key));
    const messages = found.filter((message): message is never => isObject(message) && "messageId" in message);
    const known = new Set(this.#pending.map((message) => message.messageId));
    const posts = messages.map(async (message: Outgoing) => {
      if (known.has(message.messageId)) return;
      await this.post(message).catch(() => undefined); // it is `failed` then, for people to see
    });
    await Promise.all(posts);
  }

  /** Takes out the messages that are in the log now. */
  settle(items: readonly Item[]): void {
    if (this.#pending.length === 0) return;
    const taken = new Set(items.filter((item) => item.type === "user_message").map((item) => item.id));
    for (const { messageId, acceptedAs } of this.#pending) {
      if (acceptedAs !== undefined && taken.has(acceptedAs)) this.discard(messageId);
    }
  }

  /** Forgets a message. One that the gateway has stored has its turn all the same. */
  discard(messageId: string): void {
    this.#storage.removeItem(this.#key(messageId));
    this.#set(this.#pending.filter((message) => message.messageId !== messageId));
  }

  async #send(message: Outgoing, signal: AbortSignal | undefined): Promise<AcceptedMessage> {
    const json: NewMessage = {
      content: message.content,
      message_id: message.messageId,
      ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
      ...(message.onBusy === undefined ? {} : { on_busy: message.onBusy }),
      ...(message.model === undefined ? {} : { model: message.model }),
      create: this.#first,
    };
    const messages = path`/agent/conversations/${this.#conversationId}/messages`;
    const request = { method: "POST", path: messages, json, isRepeatable: true, signal } as const;
    const sending = this.#http.json<AcceptedMessage>(request).then((accepted) => {
      this.#onAccepted();
      return accepted;
    });
    this.#onTheirWay.add(sending);
    return sending.finally(() => this.#onTheirWay.delete(sending));
  }

  /** Waits until the messages that are on their way have arrived, or cannot. */
  async sent(): Promise<void> {
    await Promise.allSettled(this.#onTheirWay);
  }

  #key(messageId: string): string {
    return `everturn-message/${this.#conversationId}/${messageId}`;
  }

  #replace(messageId: string, now: PendingMessage): void {
    this.#set(this.#pending.map((message) => (message.messageId === messageId ? now : message)));
  }

  #set(pending: readonly PendingMessage[]): void {
    this.#pending = pending;
    this.#onChange();
  }
}
