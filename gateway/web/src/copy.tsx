/** Copies a text, and says so to the eye and to the ear. */

import { useEffect, useState } from "preact/hooks";
import { texts } from "./texts";

/** Milliseconds for which a button says that the text is in the clipboard. */
const SAID_MS = 3000;

/** `label` names the text for those who do not see where the button stands. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => setSaid(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const onClick = () => void copied(text).then((isCopied) => setSaid(isCopied ? texts.copied : texts.notCopied));
  return (
    <>
      <button type="button" class="quiet copy" aria-label={said === "" ? label : undefined} onClick={onClick}>{said === "" ? texts.copy : said}</button>
      <span class="unseen" role="status">{said}</span>
    </>
  );
}

/** False when the browser does not allow to copy. */
async function copied(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    return navigator.clipboard ? true : copiedAsMarked(text);
  } catch {
    return false;
  }
}

/** Pages without TLS have no clipboard. There, a browser copies what is marked in a field. */
function copiedAsMarked(text: string): boolean {
  const before = document.activeElement as HTMLElement | null;
  const field = document.createElement("textarea");
  field.className = "unseen";
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  before?.focus({ preventScroll: true });
  return isCopied;
}
