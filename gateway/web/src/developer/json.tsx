/** JSON that can be read, folded and copied. */

import type { Json } from "everturn-client";
import { useState } from "preact/hooks";
import { Value } from "../shown";
import { texts } from "../texts";

/** A value as JSON, with a button that copies it. */
export function JsonBlock({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div class="json">
      <CopyButton text={text} />
      <Value of={text} />
    </div>
  );
}

/** The same, folded until somebody opens it. */
export function FoldedJson({ label, value }: { label: string; value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && <JsonBlock value={value as Json} />}
    </details>
  );
}

/** Copies a text. Browsers without TLS have no clipboard: there, the text is marked and copied by hand. */
export function CopyButton({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = () => void navigator.clipboard.writeText(text).then(() => setCopied(true), () => undefined);
  return (
    <button type="button" class="quiet copy" onClick={copy} onBlur={() => setCopied(false)}>
      {isCopied ? texts.developer.copied : texts.developer.copy}
    </button>
  );
}
