/** Code with its words in colour. A lexer gives the words, and each becomes an element: no HTML is made. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parse, type TokenType } from "sugar-high/core";
import { lang, languages } from "sugar-high/lang";
import { CopyButton } from "./copy";
import { later } from "./later";
import { exact } from "./shown";
import { texts } from "./texts";

/** Longer code has no colours: to look at it takes too long. */
const MOST_CHARACTERS = 20_000;

/** Blocks whose colours are remembered, so that what was seen a moment ago has them at once. */
const MOST_KEPT = 30;

/** Words that have a colour. Others are left together, which spares elements. */
const COLOURED = new Set<TokenType>(["keyword", "string", "comment", "class", "property", "entity"]);

/** A piece of code, and the class of its colour. */
interface Piece {
  text: string;
  type?: TokenType;
}

const known = new Map<string, readonly Piece[]>();

/** A block of code. While it is being written, it has no colours: each new piece would have all of it looked at anew. */
export function Code({ text, language, isOpen }: { text: string; language: string | undefined; isOpen: boolean }) {
  const name = text.length > MOST_CHARACTERS || isOpen ? undefined : lang(language?.toLowerCase() ?? "");
  const key = `${name}\n${text}`;
  const [, redraw] = useState({});
  const pieces = name && known.get(key);
  useEffect(() => {
    if (!name || pieces) return;
    return later(() => {
      // The same block, while the answer was written, may have been looked at since this one was drawn.
      if (!known.has(key)) remember(key, piecesOf(text, name));
      redraw({});
    });
  }, [key]);
  return (
    <div class="code">
      <pre tabIndex={0}><code>{pieces ? pieces.map(element) : exact(text)}</code></pre>
      {!isOpen && <CopyButton text={text} label={texts.copyCode} />}
    </div>
  );
}

function element({ text, type }: Piece): ComponentChildren {
  return type ? <span class={`code-${type}`}>{exact(text)}</span> : exact(text);
}

function piecesOf(text: string, name: string): readonly Piece[] {
  const pieces: Piece[] = [];
  const add = (value: string, type?: TokenType) => {
    const last = pieces.at(-1);
    if (last && last.type === type) last.text += value;
    else if (value !== "") pieces.push(type ? { text: value, type } : { text: value });
  };
  try {
    const config = languages.find((language) => language.id === name)?.config;
    parse(text, config).lines.forEach((line, at) => {
      if (at > 0) add("\n");
      const change = line.annotations.find((note) => note.startsWith("diff-"));
      for (const { type, value } of line.tokens) {
        if (change) add(value, change === "diff-add" ? "string" : "keyword");
        else add(value, COLOURED.has(type) ? type : undefined);
      }
    });
  } catch {
    return [{ text }];
  }
  // What is shown is the text, whatever the lexer makes of it.
  return pieces.map((piece) => piece.text).join("") === text ? pieces : [{ text }];
}

function remember(key: string, pieces: readonly Piece[]): void {
  known.set(key, pieces);
  const oldest = known.keys().next().value;
  if (known.size > MOST_KEPT && oldest !== undefined) known.delete(oldest);
}
