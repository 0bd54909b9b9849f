/** Where a message is written. Enter sends it, and Shift+Enter breaks the line. */

import { useState } from "preact/hooks";
import { Fault } from "./shown";
import { texts } from "./texts";

interface ComposerProps {
  /** Resolves when the text may be forgotten here. */
  onSend: (content: string) => Promise<void>;
  /** There while a turn runs. */
  onStop?: (() => Promise<unknown>) | undefined;
}

export function Composer({ onSend, onStop }: ComposerProps) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const attempt = (action: Promise<unknown>) => {
    setError(undefined);
    action.catch(setError);
  };
  const send = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    try {
      await onSend(text);
      setText("");
    } finally {
      setBusy(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While a word is being composed, as in Chinese, Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    attempt(send());
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        attempt(send());
      }}
    >
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <textarea
        aria-label={texts.message}
        placeholder={texts.message}
        rows={1}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {onStop && <button type="button" class="stop" onClick={() => attempt(onStop())}>{texts.stop}</button>}
      <button type="submit" disabled={isBusy || text.trim() === ""}>{texts.send}</button>
    </form>
  );
}
