/** Keys of the page, and the dialog that names the keys. */

import { useEffect, useRef, useState } from "preact/hooks";
import { texts } from "./texts";

/** The part of the page that a key goes to. */
const PLACES: Record<string, string> = { KeyM: ".composer textarea", KeyK: ".sidebar input[type=search]", KeyL: ".timeline" };

/** Whether the keys of the page are shown. */
export function useShortcuts(showList: () => void) {
  const [isHelpOpen, setHelpOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (document.querySelector("dialog[open]")) return;
      if (isHelpKey(event)) setHelpOpen(true);
      else if (!event.altKey || event.ctrlKey || event.metaKey || !go(event.code, showList)) return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return { isHelpOpen, openHelp: () => setHelpOpen(true), closeHelp: () => setHelpOpen(false) };
}

/** In a field, a question mark is a question mark. */
function isHelpKey({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (key === "/" && (ctrlKey || metaKey)) return true;
  const isInField = (target as Element).matches("input, textarea, select");
  return key === "?" && !isInField && !ctrlKey && !metaKey && !altKey;
}

/** Goes to the place of a key. False when the key has none. */
function go(code: string, showList: () => void): boolean {
  if (code === "KeyN") {
    location.hash = "#/";
    return true;
  }
  const place = PLACES[code];
  if (place === undefined) return false;
  if (code === "KeyK") showList();
  // A list that was folded on a narrow screen is there after the next drawing.
  requestAnimationFrame(() => setTimeout(() => document.querySelector<HTMLElement>(place)?.focus()));
  return true;
}

/** The first stop of Tab: past the list, to the field for a message. */
export function SkipLink() {
  const skip = () => document.querySelector<HTMLElement>(".composer textarea")?.focus();
  return <button type="button" class="skip" onClick={skip}>{texts.skip}</button>;
}

export function Help({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={texts.shortcuts} onClose={onClose}>
      <h2>{texts.shortcuts}</h2>
      <dl class="keys">
        {texts.keys.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="main" onClick={() => dialog.current?.close()}>{texts.close}</button>
    </dialog>
  );
}
