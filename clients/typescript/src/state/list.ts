/** The list of conversations from the frames of its stream. No I/O. */

import type { ListedConversation } from "../api.js";
import { bindMethods } from "../bound.js";
import { isObject } from "./fields.js";

/** The conversations of one caller, as the frames of the list's stream tell them. */
export class ConversationList {
  readonly #byId = new Map<string, ListedConversation>();

  constructor() {
    bindMethods(this);
  }

  /** The conversations, the one that was updated last first. */
  get conversations(): ListedConversation[] {
    return [...this.#byId.values()].sort(newestFirst);
  }

  /** Takes the data of the next frame. True when the list may have changed. */
  apply(data: unknown): boolean {
    if (!isObject(data)) return false;
    switch (data["type"]) {
      case "list":
        this.#byId.clear();
        if (Array.isArray(data["conversations"])) for (const row of data["conversations"]) this.#put(row);
        return true;
      case "conversation_changed":
        return this.#put(data["conversation"]);
      case "conversation_removed":
        return this.#byId.delete(String(data["conversation_id"]));
      default:
        return false;
    }
  }

  /** Adds a conversation that the stream did not tell of. False when the conversation is there. */
  add(row: ListedConversation): boolean {
    return !this.#byId.has(row.id) && this.#put(row);
  }

  #put(row: unknown): boolean {
    if (!isObject(row) || typeof row["id"] !== "string") return false;
    this.#byId.set(row["id"], row as unknown as ListedConversation);
    return true;
  }
}

/** Times are compared as the texts that they are. */
function newestFirst(one: ListedConversation, other: ListedConversation): number {
  const [time, otherTime] = [one, other].map(({ updated_at }) => (typeof updated_at === "string" ? updated_at : ""));
  if (time !== otherTime) return time! < otherTime! ? 1 : -1;
  return one.id < other.id ? 1 : -1;
}
