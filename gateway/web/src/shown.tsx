/** How values are shown as text that does nothing. */

import { EverturnError, type Json } from "everturn-client";
import { useState } from "preact/hooks";
import { texts } from "./texts";

/** Characters of a text that are shown until somebody asks for all of it. */
const FIRST = 20_000;

/** Control characters, and those that turn the direction of the text around them. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Writes characters that are not seen, and may make a text look like another one, as their numbers. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (found) => `⟨${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** JSON for people; a text is shown as it is. */
export function pretty(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);
}

/** One line for a heading. */
export function brief(value: Json): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return visible(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}

/** Milliseconds for people. */
export function duration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A number of bytes for people. */
export function bytes(count: number): string {
  const units = ["B", "KB", "MB", "GB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
  return `${Number((count / 1000 ** at).toPrecision(3))} ${units[at]}`;
}

/** A text with its line breaks. Of a very long one, the beginning. */
export function Plain({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || text.length <= FIRST) return <span class="plain">{visible(text)}</span>;
  return (
    <>
      <span class="plain">{visible(text.slice(0, FIRST))}…</span>
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
      {visible(message ?? (error instanceof Error ? error.message : String(error ?? "")))}{" "}
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
