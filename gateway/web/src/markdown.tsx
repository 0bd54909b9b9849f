/** Markdown as elements. What a text has of HTML is shown as text: no HTML is ever made from it. */

import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Code } from "./code";
import { Formula } from "./formula";
import { later } from "./later";
import { keepWritten, more, NOTHING, PART, readingOf, tokensOf, tokensOfWritten, withPlainLines } from "./reading";
import { exact, Plain, visible } from "./shown";
import { texts } from "./texts";

/** Longer texts are shown as they are: to read their structure takes too long (docs/performance.md). */
const MAX_CHARACTERS = 50_000;

/** Levels of lists and quotes; what is deeper is shown as text. */
const MAX_DEPTH = 20;

/** A text of a model, which may still be written. */
export const Markdown = memo(function Markdown({ text: written, isWriting = false }: { text: string; isWriting?: boolean }) {
  if (written.length > MAX_CHARACTERS) return <Plain text={written} />;
  const text = withPlainLines(written);
  if (isWriting) return <Growing text={text} />;
  return text.length > PART ? <InParts text={text} /> : <Blocks tokens={tokensOf(text)} />;
});

/** A text that is written. What came of it at once is drawn a part in each task. */
function Growing({ text }: { text: string }) {
  const [, redraw] = useState({});
  const read = useRef(NOTHING);
  read.current = more(read.current, text);
  keepWritten(read.current);
  useEffect(() => (read.current.text === text ? undefined : later(() => redraw({}))));
  return <Blocks tokens={read.current.tokens} isOpen />;
}

/** A long text. What is drawn of it grows from nothing, a part in each task, unless it was here a moment ago. */
function InParts({ text }: { text: string }) {
  const [, redraw] = useState({});
  const atOnce = useMemo(() => tokensOfWritten(text), [text]);
  const reading = atOnce ? undefined : readingOf(text);
  const isWhole = !reading || reading.isWhole;
  useEffect(() => {
    if (isWhole) return undefined;
    return later(() => {
      // The same text, elsewhere on the page, goes on with the same reading.
      reading.more();
      redraw({});
    });
  });
  return <Blocks tokens={atOnce ?? reading!.tokens} />;
}

function Blocks({ tokens, isOpen = false }: { tokens: readonly Token[]; isOpen?: boolean }) {
  return (
    <div class="markdown">
      {tokens.map((token, at) => (
        <Block key={at} token={token as Tokens.Generic} isOpen={isOpen && at === tokens.length - 1} />
      ))}
    </div>
  );
}

/** A paragraph, a list, a block of code … One that stays as it is is not made anew when text is added behind it. */
const Block = memo(
  ({ token, isOpen }: { token: Tokens.Generic; isOpen: boolean }) => <>{element(token, 0, isOpen)}</>,
  (one, other) => one.token.raw === other.token.raw && one.token.type === other.token.type && one.isOpen === other.isOpen,
);

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
      return <code>{exact(token["text"])}</code>;
    case "link":
      return <Link href={token["href"]}>{inner()}</Link>;
    case "formula":
      return <Formula tex={token["text"]} raw={token.raw} isDisplay={token["isDisplay"]} />;
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
    <div class="wide" tabIndex={0} role="region" aria-label={texts.table}>
      <table>
        <thead>{cells(token.header, "th")}</thead>
        <tbody>{token.rows.map((row) => cells(row, "td"))}</tbody>
      </table>
    </div>
  );
}

/** A link that leads to another site and nowhere else; any other one is shown as its text. */
export function Link({ href, children }: { href: string; children: ComponentChildren }) {
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
