/** How Markdown is read as it grows: what comes in pieces is read as what comes at once. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Token } from "marked";
import { more, NOTHING, PART, type Read, tokensOf, withPlainLines } from "../src/reading";

const LISTS = "# One\n\n- a\n- b\n\n  more of *b*\n\n1. c\n\n> quote\nlazy\n\n";
const TABLE = "| x | y |\n|---|---|\n| 1 | 2 |\n\nEnd *of* it.\n\n";
const CODE = "~~~sql\nselect 1\n\n-- `twice`\n~~~\n\nA line\nTitle\n---\n\n    indented\n\n    code\n\n```rust\nfn main() {}\n```\n";
const TEXT = `${LISTS}${TABLE}${CODE}\n- [x] done\n- [ ] open`;

/** The blocks of a text that comes at once. */
const atOnce = (text: string): Token[] => [...tokensOf(text)];

/** Blocks as one sees them: empty lines at the end of code that is being written are not seen. */
const seen = (tokens: readonly Token[]) =>
  tokens.map((token) => (token.type === "code" ? { ...token, text: String(token["text"]).trimEnd() } : token));

/** Reads all that there is of a text, in as many parts as it takes. */
function readAll(before: Read, text: string): Read {
  let read = more(before, text);
  while (read.text !== text) read = more(read, text);
  return read;
}

for (const [lines, end] of [["plain lines", "\n"], ["lines as Windows ends them", "\r\n"]] as const) {
  test(`a text of ${lines} is read as it grows as if it came at once`, () => {
    const whole = TEXT.replaceAll("\n", end);
    for (const size of [1, 2, 3, 7, 50]) {
      let read = NOTHING;
      for (let at = size; at < whole.length + size; at += size) {
        const text = withPlainLines(whole.slice(0, at));
        read = readAll(read, text);
        assert.deepEqual(seen(read.tokens), seen(atOnce(text)), `after ${at} characters in pieces of ${size}`);
      }
    }
  });
}

test("a text that comes at once is read a part at a time", () => {
  const text = `${TEXT}\n\n`.repeat(200);
  const first = more(NOTHING, text);
  assert.equal(first.text.length, PART);
  assert.ok(isDeepStrictEqual(readAll(first, text).tokens, atOnce(text)));
});

test("a block that is too long to be read with each piece is shown as it is, and what is before it stays read", () => {
  const start = "One *word*.\n\n";
  let read = readAll(NOTHING, start);
  for (let rows = 0; rows < 2000; rows++) read = readAll(read, `${read.text}- row **${rows}**\n`);
  assert.deepEqual(read.tokens.slice(0, 1), atOnce(start).slice(0, 1));
  assert.equal(read.tokens.map((token) => token.raw).join(""), read.text);
  assert.ok(read.tokens.length < 5);
});

test("another text is read from its beginning", () => {
  const read = readAll(NOTHING, "The first *half*");
  assert.deepEqual(readAll(read, "The second **try**.").tokens, atOnce("The second **try**."));
});
