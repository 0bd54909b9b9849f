/** Finds formulas in Markdown: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` on lines of their own. */

import type { MarkedOptions, Token, Tokens } from "marked";

/** A formula. */
export interface FormulaToken extends Tokens.Generic {
  readonly type: "formula";
  /** The formula in TeX. */
  readonly text: string;
  readonly isDisplay: boolean;
}

// A longer text between two signs is no formula, and no search for an end goes further.
const IN_LINE = [
  { found: /^\$\$(?!\$)([^]{1,2000}?)\$\$/, isDisplay: true },
  { found: /^\\\[([^]{1,2000}?)\\\]/, isDisplay: true },
  { found: /^\\\(([^]{1,1000}?)\\\)/, isDisplay: false },
  // No space is inside of the signs, and no digit follows: `$5 and $6` are two amounts.
  { found: /^\$(?![\s$])((?:\\[^]|[^\\$]){0,999}?(?:\\[^]|[^\\$\s]))\$(?![\d\w$])/, isDisplay: false },
];

const ON_LINES = [/^ {0,3}\$\$(?!\$)([^]{1,5000}?)\$\$[ \t]*(?:\n+|$)/, /^ {0,3}\\\[([^]{1,5000}?)\\\][ \t]*(?:\n+|$)/];

/** `$5 or $` of "5 or 6$": an amount, and then a word. */
const AMOUNT = /^[\d.,]+\s+[a-z]{2}/i;

/** What a lexer needs to find formulas. */
export const FORMULAS = {
  inline: [inLine],
  startInline: [(text: string) => at(/(?<![\w\\$])\$|\\[([]/.exec(text))],
  block: [onLines],
  startBlock: [(text: string) => at(/^ {0,3}(?:\$\$|\\\[)/m.exec(text))],
  childTokens: {},
  renderers: {},
} as unknown as NonNullable<MarkedOptions["extensions"]>;

function inLine(text: string, before: readonly Token[]): FormulaToken | undefined {
  if (text[0] !== "$" && text[0] !== "\\") return undefined;
  for (const { found, isDisplay } of IN_LINE) {
    const [raw, inside] = found.exec(text) ?? [];
    if (raw === undefined || inside === undefined || inside.includes("\n\n")) continue;
    // `US$5` is an amount.
    if (!isDisplay && raw[0] === "$" && (AMOUNT.test(inside) || /\w$/.test(before.at(-1)?.raw ?? ""))) continue;
    return { type: "formula", raw, text: inside.trim(), isDisplay };
  }
  return undefined;
}

function onLines(text: string): FormulaToken | undefined {
  for (const found of ON_LINES) {
    const [raw, inside] = found.exec(text) ?? [];
    if (raw !== undefined && inside !== undefined) return { type: "formula", raw, text: inside.trim(), isDisplay: true };
  }
  return undefined;
}

function at(found: RegExpExecArray | null): number | undefined {
  return found?.index;
}
