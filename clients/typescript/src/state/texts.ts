/** The texts that models are writing now: rules 6 and 7 of the shared transcripts. */

import { count, text } from "./fields.js";
import type { JsonObject, OpenText } from "./state.js";

/** More open texts than a gateway shows. Past it, the oldest is dropped: its event will bring it. */
const MAX_TEXTS = 256;

interface Entry {
  shown: OpenText;
  /** Bytes of UTF-8 of the text. */
  bytes: number;
}

/** The open texts of a conversation. */
export class Texts {
  readonly #entries = new Map<string, Entry>();

  /** The texts, in the order in which they began. */
  shown(): OpenText[] {
    return Array.from(this.#entries.values(), (entry) => entry.shown);
  }

  /** Takes a text frame. `parent` is the call that started the sub-agent that writes. True when something changed. */
  apply(data: JsonObject, parent: string | undefined): boolean {
    const step = count(data, "step");
    const generation = count(data, "generation");
    if (step === undefined || generation === undefined) return false;
    const agentExecutionId = text(data, "agent_execution_id");
    const part = text(data, "part");
    const key = JSON.stringify([agentExecutionId, step, part]);
    const entry = this.#entries.get(key);
    if (data["type"] === "text_start") {
      if (entry && entry.shown.generation > generation) return false;
      const [content, messageId] = [text(data, "text"), text(data, "message_id")];
      const shown = { agentExecutionId, step, part, generation, text: content, ended: false, messageId };
      const ofParent = parent === undefined ? {} : { parentToolCallId: parent };
      this.#entries.set(key, { shown: { ...shown, ...ofParent }, bytes: utf8Length(content) });
      this.#keepToLimit();
      return true;
    }
    if (!entry || entry.shown.generation !== generation) return false;
    if (data["type"] === "text_end") {
      entry.shown = { ...entry.shown, ended: true };
      return true;
    }
    return this.#append(key, entry, data);
  }

  #append(key: string, entry: Entry, data: JsonObject): boolean {
    const piece = text(data, "text");
    const bytes = utf8Length(piece);
    const offset = count(data, "offset") ?? entry.bytes;
    if (offset !== entry.bytes) {
      const isRepeated = offset + bytes <= entry.bytes;
      return isRepeated ? false : this.#entries.delete(key);
    }
    entry.shown = { ...entry.shown, text: entry.shown.text + piece };
    entry.bytes += bytes;
    return true;
  }

  /** Drops the texts of an agent execution: an event has taken their place. */
  drop(agentExecutionId: string): void {
    for (const [key, entry] of this.#entries) {
      if (entry.shown.agentExecutionId === agentExecutionId) this.#entries.delete(key);
    }
  }

  /** Drops all texts. True when there were some. */
  clear(): boolean {
    const had = this.#entries.size > 0;
    this.#entries.clear();
    return had;
  }

  #keepToLimit(): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= MAX_TEXTS) return;
      this.#entries.delete(key);
    }
  }
}

/** Bytes that a text has in UTF-8, without encoding it. */
export function utf8Length(value: string): number {
  let bytes = 0;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    const isPair = unit >= 0xd800 && unit < 0xdc00 && at + 1 < value.length;
    if (isPair) at++;
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : isPair ? 4 : 3;
  }
  return bytes;
}
