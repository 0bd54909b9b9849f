/** Where a message is written. Enter sends it, and Shift+Enter breaks the line. */

import { useRef, useState } from "preact/hooks";
import { AttachmentList, type Ready, useAttachments } from "./attachments";
import { Fault } from "./shown";
import { texts } from "./texts";

/** What a message does while a turn runs. */
export type OnBusy = "queue" | "steer" | "interrupt";

const CHOICES: readonly OnBusy[] = ["queue", "steer", "interrupt"];

/** What is sent. */
export interface Written {
  readonly content: string;
  readonly attachments?: readonly Ready[];
  /** What to do with the turn that runs; absent when none does. */
  readonly onBusy?: OnBusy;
}

interface ComposerProps {
  /** Resolves when what was written may be forgotten here. */
  onSend: (written: Written) => Promise<void>;
  /** There while a turn runs. */
  onStop?: (() => Promise<unknown>) | undefined;
}

export function Composer({ onSend, onStop }: ComposerProps) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>();
  const [isSending, setSending] = useState(false);
  const [onBusy, setOnBusy] = useState<OnBusy>("queue");
  const attachments = useAttachments();
  const isEmpty = text.trim() === "" && attachments.files.length === 0;
  const canSend = !isEmpty && !isSending && attachments.areReady;
  const attempt = (action: Promise<unknown>) => {
    setError(undefined);
    action.catch(setError);
  };
  const send = async () => {
    if (!canSend) return;
    setSending(true);
    const ready = attachments.ready();
    try {
      await onSend({ content: text, ...(ready.length > 0 && { attachments: ready }), ...(onStop && { onBusy }) });
      setText("");
      attachments.clear();
    } finally {
      setSending(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While a word is being composed, as in Chinese, Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    attempt(send());
  };
  const onDrop = (event: DragEvent) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    attachments.add(event.dataTransfer.files);
  };
  const onPaste = (event: ClipboardEvent) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    attachments.add(event.clipboardData.files);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        attempt(send());
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
    >
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <AttachmentList attachments={attachments} />
      <AttachButton onChosen={attachments.add} />
      <textarea
        aria-label={texts.message}
        placeholder={texts.message}
        rows={1}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      {onStop && <WhileBusy chosen={onBusy} onChoose={setOnBusy} />}
      {onStop && <button type="button" class="stop" onClick={() => attempt(onStop())}>{texts.stop}</button>}
      <button type="submit" disabled={!canSend}>{texts.send}</button>
    </form>
  );
}

/** What the message does with the turn that runs. */
function WhileBusy({ chosen, onChoose }: { chosen: OnBusy; onChoose: (chosen: OnBusy) => void }) {
  return (
    <select aria-label={texts.whileBusy} value={chosen} onChange={(event) => onChoose(event.currentTarget.value as OnBusy)}>
      {CHOICES.map((choice) => <option key={choice} value={choice}>{texts.onBusy[choice]}</option>)}
    </select>
  );
}

function AttachButton({ onChosen }: { onChosen: (files: FileList) => void }) {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="quiet" aria-label={texts.attach} title={texts.attach} onClick={() => chooser.current?.click()}>
        +
      </button>
      <input
        type="file"
        multiple
        hidden
        ref={chooser}
        onChange={(event) => {
          if (event.currentTarget.files) onChosen(event.currentTarget.files);
          event.currentTarget.value = ""; // the same file may be chosen again
        }}
      />
    </>
  );
}
