/**
 * Makes MathML of TeX. The library has a file of its own, which the page loads for the first formula. A browser draws MathML
 * with its own fonts.
 */

import temml from "temml";

/** An element of MathML, or a text. It is made an element by the page: no HTML is made of a formula. */
export type MathNode =
  | string
  | {
      readonly tag: string;
      readonly attributes: Readonly<Record<string, string>>;
      readonly style: Readonly<Record<string, string>>;
      readonly children: readonly MathNode[];
    };

/** What the library makes. */
interface Made {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly classes?: readonly string[];
  readonly style?: Readonly<Record<string, string>>;
  readonly children?: readonly Made[];
}

/** Elements of MathML. Others are rows of what is in them. */
const TAGS = new Set(
  ("math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr " +
    "munder munderover").split(" "),
);

/** Attributes that lead somewhere, or do something. */
const REFUSED = /^(?:href|src|on.*|style|id|xmlns.*)$/i;

/** Limits of what a formula may grow to: macros that are replaced, and lengths in em. */
const LIMITS = { maxExpand: 200, maxSize: [20, 20] as [number, number] };

/**
 * Makes the elements of a formula.
 *
 * @throws {Error} that this is no TeX.
 */
export function mathOf(tex: string, isDisplay: boolean): MathNode {
  return plain(temml.__renderToMathMLTree(tex, { displayMode: isDisplay, throwOnError: true, trust: false, ...LIMITS }) as Made);
}

function plain(made: Made): MathNode {
  if (made.text !== undefined) return made.text;
  const children = (made.children ?? []).map(plain);
  const attributes: Record<string, string> = {};
  for (const [name, value] of Object.entries(made.attributes ?? {})) if (!REFUSED.test(name)) attributes[name] = String(value);
  const classes = (made.classes ?? []).filter(Boolean).join(" ");
  if (classes !== "") attributes["class"] = classes;
  const style = { ...declarations(made.attributes?.["style"] ?? ""), ...made.style };
  return { tag: TAGS.has(made.type ?? "") ? made.type! : "mrow", attributes, style, children };
}

function declarations(style: string): Record<string, string> {
  const pairs = style.split(";").map((part) => part.split(":").map((word) => word.trim()));
  return Object.fromEntries(pairs.filter(([name, value]) => name && value)) as Record<string, string>;
}
