/** What a model writes now, beside texts for people. */

import type { OpenText } from "./state.js";

/** A tool call that a model is writing. */
export interface WrittenCall {
  readonly toolName: string;
  /** The arguments so far, as the model writes them: JSON that is not whole yet. */
  readonly toolInput: string;
}

/** Reads a text as a tool call; undefined for a text of another kind. */
export function writtenCall({ part, text }: OpenText): WrittenCall | undefined {
  if (!part.startsWith("call_")) return undefined;
  const end = text.indexOf("\n");
  return end < 0 ? { toolName: text, toolInput: "" } : { toolName: text.slice(0, end), toolInput: text.slice(end + 1) };
}
