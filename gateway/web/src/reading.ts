/**
 * Reads the structure of Markdown: at once, as a text grows, or in parts, so that a long text makes the page wait for none of
 * them. All texts come here with plain lines.
 */

import { Lexer, type Token } from "marked";
import { FORMULAS } from "./formulas";

/** Characters of the last blocks that are read again with each piece of a text. More are shown as they are until it is whole. */
const MAX_AGAIN = 10_000;

/** Characters that are read and drawn in one task. */
export const PART = 8_000;

/** Long texts whose structure is remembered, so that one that was seen a moment ago is there at once. */
const MOST_KEPT = 10;

const OPTIONS = { gfm: true, extensions: FORMULAS };

/** A text with every kind of block and mark. */
const EACH_KIND = "# a\n\nb\n=\n\nc *d* **e** `f` ~~g~~ [h](https://i.example) $j$\\\nk\n\n- l\n  1. m\n\n> n\n\n|o|p|\n|-|-|\n|q|r|\n\n```s\nt\n```\n\n---\n<u>v</u>";

/** A text, and its blocks: paragraphs, lists, code … */
export interface Read {
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** A text whose lines end as the lexer counts them: the lengths of its blocks are those of their parts of the text. */
export function withPlainLines(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** Reads a text. */
export function tokensOf(text: string): Token[] {
  try {
    return new Lexer(OPTIONS).lex(text);
  } catch {
    return unread(text);
  }
}

/**
 * Reads a text of every kind, so that the first conversation is opened sooner: a browser makes the lexer's expressions when they
 * are used first.
 */
export function getReady(): void {
  tokensOf(EACH_KIND);
}

/** What is read of a text before anything of it is. */
export const NOTHING: Read = { text: "", tokens: [] };

/**
 * Reads the next part of a text that has grown: what is new can be all of it, for somebody who comes while it is written. Only
 * the last blocks may have become something else: the ones before are not read again.
 */
export function more(before: Read, whole: string): Read {
  const known = whole.startsWith(before.text) ? before : NOTHING;
  const text = whole.slice(0, known.text.length + PART);
  return { text, tokens: longer(known.tokens, text, text.slice(known.text.length)) };
}

function longer(tokens: readonly Token[], text: string, added: string): readonly Token[] {
  const last = tokens.at(-1);
  const grown = last && (longerUnread(last, added) ?? longerCode(last, added));
  if (grown) return [...tokens.slice(0, -1), grown];
  const kept = tokens.slice(0, -2);
  const rest = text.slice(kept.reduce((sum, token) => sum + token.raw.length, 0));
  return [...kept, ...(rest.length - added.length <= MAX_AGAIN ? tokensOf(rest) : [unreadText(rest)])];
}

/** Text that is shown as it is, because it is too much to be read with each piece that is added. */
function unreadText(text: string): Token {
  return { type: "text", raw: text, text };
}

/** The lexer makes no such block: its own texts have tokens within them. */
function isUnread(token: Token): boolean {
  return token.type === "text" && !("tokens" in token);
}

function longerUnread(token: Token, added: string): Token | undefined {
  return isUnread(token) ? unreadText(token.raw + added) : undefined;
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

/** A long text that is read in parts: nothing at first, then its blocks, then what is in them, a part at a time. */
export class Reading {
  readonly #lexer = new Lexer(OPTIONS);
  readonly #text: string;
  /** Undefined until they are found. */
  #blocks: readonly Token[] | undefined;
  /** Blocks that are read. */
  #count = 0;
  /** Places of the lexer's queue that are read. */
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** What is read, from the beginning. */
  get tokens(): readonly Token[] {
    return this.#blocks?.slice(0, this.#count) ?? [];
  }

  get isWhole(): boolean {
    return this.#count === this.#blocks?.length;
  }

  /** Finds the blocks, or reads the next part of them. To find them all takes as long as a part, so it has a task of its own. */
  more(): void {
    try {
      if (this.#blocks) this.#readPart(this.#blocks);
      else this.#blocks = this.#lexer.blockTokens(this.#text, this.#lexer.tokens);
    } catch {
      this.#failed();
    }
  }

  #readPart(blocks: readonly Token[]): void {
    for (let characters = 0; characters < PART && this.#count < blocks.length; this.#count++) {
      const block = blocks[this.#count]!;
      this.#readWithin(listsWithin(block));
      characters += block.raw.length;
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
let written = NOTHING;

/** Remembers a text that is being written: the answer that has all of it comes next. */
export function keepWritten(read: Read): void {
  written = read;
}

/** The blocks of a text that was written just now: it is there at once, and is not read again from its beginning. */
export function tokensOfWritten(text: string): readonly Token[] | undefined {
  if (written.text === "" || !text.startsWith(written.text)) return undefined;
  const read = more(written, text);
  if (read.text !== text) return undefined;
  written = read;
  // A part that was too long to be read again, and names that a later block gives to addresses, need the whole text.
  const isExact = !read.tokens.some((token) => token.type === "def" || isUnread(token));
  return isExact ? read.tokens : undefined;
}
