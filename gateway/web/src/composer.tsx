/** Where a message is written. Enter sends it, and Shift+Enter breaks the line. */

import type { RefObject } from "preact";
import { useSyncExternalStore } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { AttachmentList, type Attachments, attachmentsOf, type Ready } from "./attachments";
import { changeDraft, draftOf, followDrafts, forgetDraft } from "./drafts";
import { Icon } from "./icons";
import { type ModelChoice, ModelPicker } from "./models";
import { Fault, visible } from "./shown";
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
  /** The conversation, whose draft is shown; "" for a new one. */
  id: string;
  /** Resolves when what was written may be forgotten here. */
  onSend: (written: Written) => Promise<void>;
  /** The turn that runs. */
  turn?: string | null;
  /** Ends a turn, and no other. */
  onStop?: (turn: string) => Promise<unknown>;
  /** The name of the agent that reads the message. */
  agent?: string | undefined;
  /** The models of the agent, where there is something to choose. */
  models?: ModelChoice | undefined;
  /** Something else on the page takes the focus. */
  isQuiet?: boolean;
}

export function Composer({ id, onSend, turn = null, onStop, agent, models, isQuiet = false }: ComposerProps) {
  const [error, setError] = useState<unknown>();
  const [isSending, setSending] = useState(false);
  const [onBusy, setOnBusy] = useState<OnBusy>("queue");
  const draft = useSyncExternalStore(followDrafts, () => draftOf(id));
  const { text } = draft;
  const attachments = attachmentsOf(id, draft);
  const field = useRef<HTMLTextAreaElement>(null);
  useFocus(field, isQuiet, turn);
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
      await onSend({ content: text, ...(ready.length > 0 && { attachments: ready }), ...(turn !== null && { onBusy }) });
      forgetDraft(id);
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
  const onSubmit = (event: Event) => {
    event.preventDefault();
    attempt(send());
  };
  return (
    <form class="composer" onSubmit={onSubmit} {...takesFiles(attachments)}>
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <div class="box">
        <AttachmentList attachments={attachments} />
        <textarea
          ref={field}
          aria-label={texts.message}
          placeholder={agent === undefined ? texts.message : texts.messageTo(visible(agent))}
          rows={1}
          value={text}
          onInput={(event) => changeDraft(id, { text: event.currentTarget.value })}
          onKeyDown={onKeyDown}
        />
        <div class="tools">
          {turn !== null && <WhileBusy chosen={onBusy} onChoose={setOnBusy} />}
          {turn !== null && onStop && <Stop key={turn} onStop={() => onStop(turn)} onError={setError} />}
          <button type="submit" class="send" disabled={!canSend}><span>{texts.send}</span><Icon name="send" /></button>
          {models && <ModelPicker choice={models} onError={setError} />}
          <AttachButton onChosen={attachments.add} />
        </div>
      </div>
    </form>
  );
}

/**
 * Gives the field the focus when it comes, and when a turn ends with the focus nowhere: whoever types writes a message. On a
 * touch screen the focus would open a keyboard that nobody asked for.
 */
function useFocus(field: RefObject<HTMLTextAreaElement | null>, isQuiet: boolean, turn: string | null): void {
  const isFirst = useRef(true);
  useEffect(() => {
    const isFree = isFirst.current || document.activeElement === document.body;
    isFirst.current = false;
    if (isFree && !isQuiet && !matchMedia("(pointer: coarse)").matches) field.current?.focus({ preventScroll: true });
  }, [turn]);
}

/** Files that are dropped or pasted go with the message. */
function takesFiles({ add }: Attachments) {
  const take = (event: Event, files: FileList | undefined) => {
    if (!files?.length) return;
    event.preventDefault();
    add(files);
  };
  return {
    onDragOver: (event: DragEvent) => event.preventDefault(),
    onDrop: (event: DragEvent) => take(event, event.dataTransfer?.files),
    onPaste: (event: ClipboardEvent) => take(event, event.clipboardData?.files),
  };
}

/** Ends the turn that somebody sees. Pressed again, it does nothing: the next turn has a button of its own. */
function Stop({ onStop, onError }: { onStop: () => Promise<unknown>; onError: (error: unknown) => void }) {
  const [isSent, setSent] = useState(false);
  const stop = () => {
    if (isSent) return;
    setSent(true);
    onError(undefined);
    onStop().catch((caught: unknown) => {
      setSent(false);
      onError(caught);
    });
  };
  return (
    <button type="button" class="stop" aria-disabled={isSent} onClick={stop}><Icon name="stop" />{isSent ? texts.stopping : texts.stop}</button>
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
      <button type="button" class="quiet round attach" aria-label={texts.attach} title={texts.attach} onClick={() => chooser.current?.click()}>
        <Icon name="attach" />
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
