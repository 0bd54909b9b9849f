/** A formula. Until the library is there, and for what is no TeX, the text stands as it was written. */

import { type ComponentChildren, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { later } from "./later";
import type { MathNode } from "./math";
import { exact } from "./shown";
import { texts } from "./texts";

/** Formulas that are remembered, so that what was seen a moment ago is there at once. */
const MOST_KEPT = 300;

/** Formulas that were read: what is drawn, or undefined for what is no TeX. */
const known = new Map<string, MathNode | undefined>();

let library: Promise<typeof import("./math")> | undefined;

export function Formula({ tex, raw, isDisplay }: { tex: string; raw: string; isDisplay: boolean }) {
  const key = `${isDisplay}${tex}`;
  const [, redraw] = useState({});
  const math = known.get(key);
  useEffect(() => {
    if (known.has(key)) return undefined;
    let takeBack = (): void => undefined;
    let isGone = false;
    library ??= import("./math.js");
    library.then(
      ({ mathOf }) => {
        if (!isGone) takeBack = later(() => (remember(key, () => mathOf(tex, isDisplay)), redraw({})));
      },
      // The next formula asks again.
      () => (library = undefined),
    );
    return () => {
      isGone = true;
      takeBack();
    };
  }, [key]);
  const shown = math === undefined ? <code>{exact(raw.trim())}</code> : element(math);
  if (!isDisplay) return shown;
  return <span class="formula" tabIndex={0} role="region" aria-label={texts.formula}>{shown}</span>;
}

function element(node: MathNode): ComponentChildren {
  if (typeof node === "string") return exact(node);
  return h(node.tag, { ...node.attributes, style: node.style } as never, node.children.map(element));
}

function remember(key: string, read: () => MathNode): void {
  try {
    if (!known.has(key)) known.set(key, read());
  } catch {
    known.set(key, undefined);
  }
  const oldest = known.keys().next().value;
  if (known.size > MOST_KEPT && oldest !== undefined) known.delete(oldest);
}
