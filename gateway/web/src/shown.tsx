/** How values are shown as text that does nothing. */

import { EverturnError, type Json } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { texts } from "./texts";

/** Characters of a text that are shown until somebody asks for all of it. */
const FIRST = 20_000;

/** Characters of a text in a heading. */
const MOST_IN_LINE = 120;

/** Control characters, and those that turn the direction of the text around them. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Marks that have a direction, and are not seen. In a value they put signs and numbers beside them into another order. */
const MARKS = /[\u061c\u200e\u200f]/g;

/**
 * Writes characters that are not seen, and may make a text look like another one, as their numbers. Marks of a direction stay:
 * texts in Arabic and Hebrew need them. Whoever shows a text beside another one isolates it, so that they turn nothing else.
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, numbered);
}

/** Shows a value or code as exactly what it is: with the numbers of marks that have a direction, too. */
export function exact(text: string): string {
  return visible(text).replace(MARKS, numbered);
}

/** JSON that somebody may edit, with characters that are not seen in JSON's own form. */
export function escaped(json: string): string {
  const inJson = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(HIDDEN, inJson).replace(MARKS, inJson);
}

/** A text that stands in a sentence of the page, where no element can isolate it. */
export function isolated(text: string): string {
  return `\u2068${visible(text)}\u2069`;
}

function numbered(found: string): string {
  return `⟨${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** JSON for people; a text is shown as it is. */
export function pretty(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);
}

/** Whether a value may have a whole number that JavaScript has rounded. */
export function isRounded(value: Json | undefined): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}

/** One line for a heading. */
export function brief(value: Json): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.length > MOST_IN_LINE ? `${text.slice(0, MOST_IN_LINE)}…` : text;
  return typeof value === "string" ? visible(line) : exact(line);
}

/** Milliseconds for people. */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A number of bytes for people. */
export function bytes(count: number): string {
  const units = ["B", "KB", "MB", "GB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
  return `${Number((count / 1000 ** at).toPrecision(3))} ${units[at]}`;
}

/** JSON, or a text that is a value. */
export function Value({ of }: { of: Json | undefined }) {
  return <Text text={pretty(of)} />;
}

/** A text that is a value, character for character. */
export function Text({ text }: { text: string }) {
  return <pre tabIndex={0}><Plain text={text} show={exact} /></pre>;
}

/** A text with its line breaks. Of a very long one, the beginning. */
export function Plain({ text, show = visible }: { text: string; show?: (text: string) => string }) {
  const [isWhole, setWhole] = useState(false);
  const whole = useRef<HTMLSpanElement>(null);
  // The button that asked for it is gone.
  useEffect(() => {
    if (isWhole) whole.current?.focus({ preventScroll: true });
  }, [isWhole]);
  if (isWhole) return <span class="plain" tabIndex={-1} ref={whole}>{show(text)}</span>;
  if (text.length <= FIRST) return <span class="plain">{show(text)}</span>;
  return (
    <>
      <span class="plain">{show(text.slice(0, FIRST))}…</span>
      <button type="button" class="quiet" onClick={() => setWhole(true)}>
        {texts.showAll(text.length)}
      </button>
    </>
  );
}

/** An error: its sentence, and its code with the page that says what to do. */
export function Fault({ error, code, message }: { error?: unknown; code?: string | undefined; message?: string | undefined }) {
  const known = error instanceof EverturnError ? error : undefined;
  const name = code ?? known?.code;
  const page = known ? known.docs : name && `docs/errors/${encodeURIComponent(name)}`;
  return (
    <span class="fault">
      <bdi>{visible(message ?? (error instanceof Error ? error.message : String(error ?? "")))}</bdi>{" "}
      {page ? (
        <a href={page} target="_blank" rel="noopener">
          {name}
        </a>
      ) : (
        <code>{name}</code>
      )}
    </span>
  );
}
