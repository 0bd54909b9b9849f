/** What may be done with a conversation of the list: another title, and removal. */

import type { api } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { forgetDraft } from "./drafts";
import { conversation, forget } from "./everturn";
import { exportConversation, type Format } from "./export";
import { Fault, isolated } from "./shown";
import { texts } from "./texts";

type Dialog = "rename" | "export" | "delete";

/** The buttons beside the conversation that is open. */
export function Manage({ row }: { row: api.ListedConversation }) {
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  return (
    <span class="manage">
      <button type="button" class="quiet" onClick={() => setDialog("rename")}>{texts.rename}</button>
      <button type="button" class="quiet" onClick={() => setDialog("export")}>{texts.export}</button>
      <button type="button" class="quiet danger" onClick={() => setDialog("delete")}>{texts.delete}</button>
      {dialog === "rename" && <Rename row={row} onClose={close} />}
      {dialog === "export" && <Export row={row} onClose={close} />}
      {dialog === "delete" && <Delete row={row} onClose={close} />}
    </span>
  );
}

function Rename({ row, onClose }: { row: api.ListedConversation; onClose: () => void }) {
  const [title, setTitle] = useState(row.title);
  return (
    <Question label={texts.rename} action={texts.saveTitle} onClose={onClose} onAgree={() => conversation(row.id).rename(title)}>
      <input aria-label={texts.title} value={title} maxLength={200} onInput={(event) => setTitle(event.currentTarget.value)} />
    </Question>
  );
}

function Export({ row, onClose }: { row: api.ListedConversation; onClose: () => void }) {
  const [format, setFormat] = useState<Format>("markdown");
  const choice = (value: Format) => (
    <label class="choice">
      <input type="radio" name="format" checked={format === value} onChange={() => setFormat(value)} /> {texts.formats[value]}
    </label>
  );
  return (
    <Question label={texts.export} action={texts.saveFile} onClose={onClose} onAgree={() => exportConversation(conversation(row.id), format)}>
      {choice("markdown")}
      {choice("json")}
    </Question>
  );
}

function Delete({ row, onClose }: { row: api.ListedConversation; onClose: () => void }) {
  const remove = async () => {
    await conversation(row.id).delete();
    forget(row.id);
    forgetDraft(row.id);
    location.hash = "#/";
  };
  return (
    <Question label={texts.deleteWhat(isolated(row.title || texts.untitled))} action={texts.delete} isDangerous onClose={onClose} onAgree={remove}>
      <p>{texts.deleteWhy}</p>
    </Question>
  );
}

interface QuestionProps {
  label: string;
  action: string;
  /** The action cannot be taken back: Cancel has the focus. */
  isDangerous?: boolean;
  onAgree: () => Promise<unknown>;
  onClose: () => void;
  children: ComponentChildren;
}

/** A modal dialog, which keeps the focus, and which Escape closes. */
function Question({ label, action, isDangerous = false, onAgree, onClose, children }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>();
  const [isSent, setSent] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const agree = (event: Event) => {
    event.preventDefault();
    setSent(true);
    setError(undefined);
    onAgree().then(onClose, (caught: unknown) => {
      setError(caught);
      setSent(false);
    });
  };
  return (
    <dialog ref={dialog} aria-label={label} onClose={onClose}>
      <form onSubmit={agree}>
        <h2>{label}</h2>
        {children}
        {error !== undefined && <p role="alert"><Fault error={error} /></p>}
        <div class="actions">
          <button type="submit" class={isDangerous ? "danger" : undefined} disabled={isSent}>{action}</button>
          <button type="button" autofocus={isDangerous} onClick={() => dialog.current?.close()}>{texts.cancel}</button>
        </div>
      </form>
    </dialog>
  );
}
