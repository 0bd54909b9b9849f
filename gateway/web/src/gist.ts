/** The result of a tool in a line. */

import type { Json } from "everturn-client";
import { exact } from "./shown";

/** Characters of a line; the page cuts the line to the room that there is. */
const MOST = 240;

/** Characters of a text in which its first line is looked for. */
const MOST_LOOKED_AT = 4000;

/** Fields of an object that a line names. */
const MOST_FIELDS = 6;

/**
 * The first line of a result, or the sentence of a failure; empty when nothing came back. Fields that a result repeats from the
 * tool's input are left out.
 */
export function gistOf(value: Json | undefined, input?: Json): string {
  return exact(cut(lineOf(value, input)));
}

function lineOf(value: Json | undefined, input?: Json): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return firstLine(String(value));
  if (Array.isArray(value)) return textOf(value) ?? cut(JSON.stringify(value.slice(0, MOST_FIELDS)));
  const { error, content, truncated, text, status, body } = value;
  if (typeof error === "string") return firstLine(error);
  if (truncated === true && typeof text === "string") return firstLine(text);
  // An HTTP tool answers so (docs/tools/http.md).
  if (typeof status === "number" && body !== undefined) return lineOf(body, input);
  if (Array.isArray(content)) return textOf(content) ?? "";
  const given = typeof input === "object" && input !== null && !Array.isArray(input) ? input : {};
  const fields = Object.entries(value).filter(([name, field]) => field !== given[name]);
  return fields.slice(0, MOST_FIELDS).map(([name, field]) => `${name}: ${shortOf(field)}`).join(" · ");
}

/** The first text of a result in parts, as MCP servers give it; files have a place of their own. */
function textOf(parts: readonly Json[]): string | undefined {
  if (!parts.every((part) => typeof part === "object" && part !== null && !Array.isArray(part) && typeof part["type"] === "string")) return undefined;
  const texts = parts.flatMap((part) => (part as { text?: Json }).text ?? []);
  return texts.map((text) => firstLine(String(text))).find((line) => line !== "") ?? "";
}

function shortOf(field: Json): string {
  return typeof field === "string" ? firstLine(field) : cut(JSON.stringify(field));
}

function firstLine(text: string): string {
  return cut((text.slice(0, MOST_LOOKED_AT).trim().split("\n", 1)[0] ?? "").trimEnd());
}

function cut(text: string): string {
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
}
