/** Server-sent events from bytes, as https://html.spec.whatwg.org/multipage/server-sent-events.html has them. */

import { EverturnError } from "../errors.js";

/** One message of a stream. */
export interface SseMessage {
  /** `""` without one. */
  readonly event: string;
  readonly data: string;
  /** The message's own; it does not stay for the next one. */
  readonly id?: string;
  /** Milliseconds to wait before the next connection. */
  readonly retry?: number;
}

/** Reads the messages of one connection. */
export class SseParser {
  readonly #maxChars: number;
  readonly #decoder = new TextDecoder();
  /** Pieces of the line that has not ended, and their characters. */
  #line: string[] = [];
  /** The last line ended with CR, so an LF that follows belongs to it. */
  #skipsLineFeed = false;
  #message: { event?: string; data?: string[]; id?: string; retry?: number } = {};
  /** Characters of the message's data, and of the line that has not ended. */
  #dataChars = 0;
  #lineChars = 0;

  /** A message of more than `maxChars` characters is an error, so that a broken server cannot fill the memory. */
  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** Takes the next bytes, which may be cut anywhere, and returns the messages that they complete. */
  push(chunk: Uint8Array): SseMessage[] {
    const decoded = this.#decoder.decode(chunk, { stream: true });
    if (decoded === "") return [];
    const text = this.#skipsLineFeed && decoded.startsWith("\n") ? decoded.slice(1) : decoded;
    const messages: SseMessage[] = [];
    let from = 0;
    for (const { 0: lineEnd, index } of text.matchAll(/\r\n|\r|\n/g)) {
      const line = this.#completeLine(text.slice(from, index));
      from = index + lineEnd.length;
      const message = line === "" ? this.#completeMessage() : this.#field(line);
      if (message) messages.push(message);
    }
    this.#skipsLineFeed = from === text.length && text.endsWith("\r");
    this.#line.push(text.slice(from));
    this.#lineChars += text.length - from;
    this.#checkSize();
    return messages;
  }

  #checkSize(): void {
    if (this.#dataChars + this.#lineChars <= this.#maxChars) return;
    throw new EverturnError("frame_too_large", `The gateway sent a frame of more than ${this.#maxChars} characters.`);
  }

  #completeLine(end: string): string {
    const line = this.#line.length === 0 ? end : this.#line.join("") + end;
    this.#line = [];
    this.#lineChars = 0;
    return line;
  }

  #field(line: string): undefined {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    switch (name) {
      case "event":
        this.#message.event = value;
        break;
      case "data":
        (this.#message.data ??= []).push(value);
        this.#dataChars += value.length + 1;
        this.#checkSize();
        break;
      case "id":
        if (!value.includes("\0")) this.#message.id = value;
        break;
      case "retry":
        if (/^[0-9]+$/.test(value)) this.#message.retry = Number(value);
        break;
    }
  }

  #completeMessage(): SseMessage | undefined {
    const { event, data, ...others } = this.#message;
    const isEmpty = Object.keys(this.#message).length === 0;
    this.#message = {};
    this.#dataChars = 0;
    return isEmpty ? undefined : { event: event ?? "", data: data?.join("\n") ?? "", ...others };
  }
}
