/** Reads the structure of Markdown: at once, as a text grows, or in parts, so that a long text makes the page wait for none of them. */

import { Lexer, type Token } from "marked";

/** Characters that are read again with each piece of a text that is written. More are shown as they are until it is whole. */
const MAX_AGAIN = 10_000;

/** Characters that are read and drawn in one task. */
export const PART = 8_000;

/** Long texts whose structure is remembered, so that one that was seen a moment ago is there at once. */
const MOST_KEPT = 10;

/** A text, and its blocks: paragraphs, lists, code … */
export interface Read {
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** Reads a text. */
export function tokensOf(text: string): Token[] {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return unread(text);
  }
}

/** Reads a text that has grown. Only its last blocks may have become something else: the ones before are not read again. */
export function more(before: Read, text: string): Token[] {
  if (!text.startsWith(before.text)) return tokensOf(text);
  const last = before.tokens.at(-1);
  const longer = last && longerCode(last, text.slice(before.text.length));
  if (longer) return [...before.tokens.slice(0, -1), longer];
  const kept = before.tokens.slice(0, -2);
  const rest = text.slice(kept.reduce((sum, token) => sum + token.raw.length, 0));
  if (rest.length <= MAX_AGAIN) return [...kept, ...tokensOf(rest)];
  return [...kept, { type: "text", raw: rest, text: rest } as Token];
}

/** A block of code to which something is added that cannot end it. */
function longerCode(token: Token, added: string): Token | undefined {
  const raw = token.raw + added;
  const isFenced = token.type === "code" && /^(```|~~~).*\n/.test(token.raw) && !/\n *(```|~~~)/.test(token.raw);
  if (!isFenced || /[`~]/.test(added)) return undefined;
  return { ...token, raw, text: raw.slice(raw.indexOf("\n") + 1).replace(/\n$/, "") } as Token;
}

/** A text that is nested too deeply for the parser is shown as it is. */
function unread(text: string): Token[] {
  return [{ type: "html", raw: text, text } as Token];
}

/** A long text that is read in parts: its blocks at first, and what is in them a part at a time. */
export class Reading {
  readonly #lexer = new Lexer({ gfm: true });
  readonly #text: string;
  #blocks: readonly Token[] = [];
  /** Blocks that are read. */
  #count = 0;
  /** Places of the lexer's queue that are read. */
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    try {
      this.#blocks = this.#lexer.blockTokens(text.replace(/\r\n|\r/g, "\n"), this.#lexer.tokens);
    } catch {
      this.#failed();
    }
    this.more();
  }

  /** What is read, from the beginning. */
  get tokens(): readonly Token[] {
    return this.#blocks.slice(0, this.#count);
  }

  get isWhole(): boolean {
    return this.#count === this.#blocks.length;
  }

  /** Reads the next part. */
  more(): void {
    try {
      for (let characters = 0; characters < PART && !this.isWhole; this.#count++) {
        const block = this.#blocks[this.#count]!;
        this.#readWithin(listsWithin(block));
        characters += block.raw.length;
      }
    } catch {
      this.#failed();
    }
  }

  /** The lexer has put aside, in their order, the texts in which words are still to be found, and the lists that they go to. */
  #readWithin(lists: ReadonlySet<unknown>): void {
    const queue = this.#lexer.inlineQueue;
    for (let next = queue[this.#at]; next && lists.has(next.tokens); next = queue[++this.#at]) {
      this.#lexer.inlineTokens(next.src, next.tokens);
    }
  }

  #failed(): void {
    this.#blocks = unread(this.#text);
    this.#count = 1;
  }
}

/** The lists that are somewhere in a block. */
function listsWithin(block: Token): ReadonlySet<unknown> {
  const found = new Set<unknown>();
  const waiting: unknown[] = [block];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) found.add(value);
    for (const inner of Object.values(value as object)) if (typeof inner === "object" && inner !== null) waiting.push(inner);
  }
  return found;
}

const known = new Map<string, Reading>();

/** The reading of a long text, which goes on where it was left. */
export function readingOf(text: string): Reading {
  const reading = known.get(text) ?? new Reading(text);
  known.delete(text);
  known.set(text, reading);
  const oldest = known.keys().next().value;
  if (known.size > MOST_KEPT && oldest !== undefined) known.delete(oldest);
  return reading;
}

/** The text that was written last. */
let written: Read = { text: "", tokens: [] };

/** Remembers a text that is being written: the answer that has all of it comes next. */
export function keepWritten(read: Read): void {
  written = read;
}

/** The blocks of a text that was written just now: it is there at once, and is not read again from its beginning. */
export function tokensOfWritten(text: string): readonly Token[] | undefined {
  if (written.text === "" || !text.startsWith(written.text)) return undefined;
  const tokens = more(written, text);
  written = { text, tokens };
  // A part that was too long to be read again, and names that a later block gives to addresses, need the whole text.
  const isExact = !tokens.some((token) => token.type === "def" || (token.type === "text" && !("tokens" in token)));
  return isExact ? tokens : undefined;
}
