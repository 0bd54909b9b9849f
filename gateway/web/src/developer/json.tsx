/** JSON that can be read, folded and copied. */

import type { Json } from "everturn-client";
import { useState } from "preact/hooks";
import { CopyButton } from "../copy";
import { Value } from "../shown";
import { texts } from "../texts";

/** A value as JSON, with a button that copies it. */
export function JsonBlock({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div class="json">
      <CopyButton text={text} label={texts.developer.copyJson} />
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
