/** How the developer's view says times, amounts and names. */

import type { Item, Json, TurnRow, TurnRows } from "everturn-client";
import { aboutMark } from "../money";
import { visible } from "../shown";
import { language, texts } from "../texts";

/** Milliseconds for people, from milliseconds to hours. */
export function took(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** The time of day, to the millisecond. */
export function clock(time: string | number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  return `${date.toLocaleTimeString(language, { hour12: false })}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** What a row is about, as people read it. */
export function labelOf({ kind, name, agent, step }: TurnRow): string {
  if (kind === "llm_call") return texts.developer.llmCall(step ?? 0);
  if (kind === "note") return visible(name.replaceAll("_", " "));
  return visible(agent === undefined ? name : `${name} → ${agent}`);
}

/** `running`, or how a turn ended; of an error its code. */
export function outcomeOf({ end, ended }: TurnRows): string {
  if (end?.outcome === "error") return visible(end.code ?? texts.error);
  if (end?.outcome === "cancelled") return texts.cancelled;
  return ended === undefined ? texts.running : texts.done;
}

/** Tokens of a usage, as on the wire: those read and those written. */
export function tokensOf(usage: Json | undefined): { input: number; output: number } | undefined {
  if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return undefined;
  return { input: Number(usage["input_tokens"] ?? 0), output: Number(usage["output_tokens"] ?? 0) };
}

/** How many tokens, like `90 → 7 tokens`. */
export function tokenText(usage: Json | undefined): string {
  const tokens = tokensOf(usage);
  if (!tokens || tokens.input + tokens.output === 0) return "";
  return `${aboutMark(usage)}${tokens.input.toLocaleString(language)} → ${texts.tokens(tokens.output)}`;
}

/** LLM calls, tokens and cost of a turn, each when it is known. */
export function amountsOf({ end, rows }: TurnRows): string[] {
  const calls = end?.steps ?? rows.filter((row) => row.kind === "llm_call" && row.depth === 0).length;
  const cost = end?.costUsd === undefined ? "" : `${aboutMark(end.usage)}$${end.costUsd}`;
  return [texts.developer.calls(calls), tokenText(end?.usage), cost].filter((part) => part !== "");
}

/** The turns that are known from their beginning. */
export function wholeTurns(turns: readonly TurnRows[], items: readonly Item[]): TurnRows[] {
  const first = items.find((item) => item.turn !== undefined);
  const isCut = first !== undefined && first.sequenceNumber > 1 && first.id !== first.turn;
  return turns.slice(isCut ? 1 : 0);
}
