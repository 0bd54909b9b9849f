/** Markdown as elements. What a text has of HTML is shown as text: no HTML is ever made from it. */

import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { Code } from "./code";
import { Plain, visible } from "./shown";

/** Longer texts are shown as they are: to read their structure takes too long (docs/performance.md). */
const MAX_CHARACTERS = 50_000;

/** Characters that are read again with each piece of a text that is written. More are shown as they are until it is whole. */
const MAX_AGAIN = 10_000;

/** Levels of lists and quotes; what is deeper is shown as text. */
const MAX_DEPTH = 20;

/** A text of a model, which may still be written. */
export const Markdown = memo(function Markdown({ text, isWriting = false }: { text: string; isWriting?: boolean }) {
  const before = useRef<Read>({ text: "", tokens: [] });
  if (text.length > MAX_CHARACTERS) return <Plain text={text} />;
  const tokens = isWriting ? more(before.current, text) : tokensOf(text);
  if (isWriting) before.current = { text, tokens };
  return (
    <div class="markdown">
      {tokens.map((token, at) => {
        const isLast = at === tokens.length - 1;
        return <Block key={at} token={token as Tokens.Generic} isOpen={isWriting && isLast} />;
      })}
    </div>
  );
});

/** A paragraph, a list, a block of code … One that stays as it is is not made anew when text is added behind it. */
const Block = memo(
  ({ token, isOpen }: { token: Tokens.Generic; isOpen: boolean }) => <>{element(token, 0, isOpen)}</>,
  (one, other) => one.token.raw === other.token.raw && one.token.type === other.token.type && one.isOpen === other.isOpen,
);

interface Read {
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** Reads a text that has grown. Only its last blocks may have become something else: the ones before are not read again. */
function more(before: Read, text: string): Token[] {
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

function tokensOf(text: string): Token[] {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return [{ type: "html", raw: text, text } as Token]; // nested too deeply for the parser
  }
}

function blocks(tokens: readonly Token[] | undefined, depth: number): ComponentChildren[] {
  return (tokens ?? []).map((token) => element(token as Tokens.Generic, depth));
}

function element(token: Tokens.Generic, depth: number, isOpen = false): ComponentChildren {
  if (depth > MAX_DEPTH) return visible(token.raw);
  const inner = () => blocks(token.tokens, depth + 1);
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p>{inner()}</p>;
    case "heading": {
      // The page has headings of its own, of the levels 1 and 2.
      const Heading = `h${Math.min(token["depth"] + 2, 6)}` as "h3";
      return <Heading>{inner()}</Heading>;
    }
    case "code":
      return <Code text={token["text"]} language={/^\S*/.exec(token["lang"] ?? "")?.[0]} isOpen={isOpen} />;
    case "blockquote":
      return <blockquote>{inner()}</blockquote>;
    case "list":
      return list(token as unknown as Tokens.List, depth);
    case "table":
      return table(token as unknown as Tokens.Table, depth);
    case "hr":
      return <hr />;
    case "br":
      return <br />;
    case "strong":
      return <strong>{inner()}</strong>;
    case "em":
      return <em>{inner()}</em>;
    case "del":
      return <del>{inner()}</del>;
    case "codespan":
      return <code>{visible(token["text"])}</code>;
    case "link":
      return <Link href={token["href"]}>{inner()}</Link>;
    case "image": // nothing is fetched from elsewhere
      return <Link href={token["href"]}>{visible(token["text"] || token["href"])}</Link>;
    case "checkbox":
      return <input type="checkbox" checked={token["checked"]} disabled aria-label={token["checked"] ? "☑" : "☐"} />;
    case "escape":
      return visible(token["text"]);
    case "text":
      return token.tokens ? inner() : visible(decoded(token["text"]));
    default:
      return visible(token.raw);
  }
}

function list(token: Tokens.List, depth: number) {
  const items = token.items.map((item) => (
    <li>
      {item.task && !item.tokens.some(hasCheckbox) && <input type="checkbox" checked={!!item.checked} disabled />}
      {blocks(item.tokens, depth + 1)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function hasCheckbox(token: Token): boolean {
  return token.type === "checkbox" || ("tokens" in token && !!token.tokens?.some((inner) => inner.type === "checkbox"));
}

function table(token: Tokens.Table, depth: number) {
  const cells = (row: Tokens.TableCell[], Cell: "th" | "td") => (
    <tr>{row.map((cell) => <Cell class={cell.align ?? undefined}>{blocks(cell.tokens, depth + 1)}</Cell>)}</tr>
  );
  return (
    <div class="wide">
      <table>
        <thead>{cells(token.header, "th")}</thead>
        <tbody>{token.rows.map((row) => cells(row, "td"))}</tbody>
      </table>
    </div>
  );
}

/** A link that leads to another site and nowhere else; any other one is shown as its text. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!isHarmless(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function isHarmless(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href).protocol);
  } catch {
    return false;
  }
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };

/** Markdown may write some characters as entities. */
function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
