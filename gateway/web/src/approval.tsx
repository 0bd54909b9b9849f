/** A call that waits for a person: whether the call may run, with which input, and until when somebody can answer. */

import type { Conversation, Json, ToolCall } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clock, useNow } from "./clock";
import { escaped, Fault, Value, visible } from "./shown";
import { texts } from "./texts";

/** What the person does beside a plain answer. */
type Doing = "edit" | "reason";

/** Asks a person. The first answer counts, in whichever tab it was given. */
export function ApprovalCard({ chat, call }: { chat: Conversation; call: ToolCall }) {
  const [doing, setDoing] = useState<Doing>();
  const [isRemembered, setRemembered] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isSent, setSent] = useState(false);
  const first = useRef<HTMLButtonElement>(null);
  const answer = (action: () => Promise<unknown>) => {
    setSent(true);
    setError(undefined);
    action().catch((caught: unknown) => {
      setError(caught);
      setSent(false);
    });
  };
  const approve = (toolInput?: Json) => {
    const options = { ...(toolInput !== undefined && { toolInput }), ...(isRemembered && { remember: true }) };
    answer(() => chat.approve(call, options));
  };
  const deny = (reason = "") => answer(() => chat.deny(call, reason.trim() === "" ? {} : { reason }));
  const back = () => {
    setDoing(undefined);
    setError(undefined);
    // The button is there after the next drawing.
    requestAnimationFrame(() => first.current?.focus());
  };
  const always = (
    <label class="always">
      <input type="checkbox" checked={isRemembered} onChange={(event) => setRemembered(event.currentTarget.checked)} />
      <span>{texts.always(visible(call.toolName))}</span>
    </label>
  );
  return (
    <div class="approval" role="group" aria-label={texts.approval}>
      <header>
        <p class="asked">{texts.approval}</p>
        {call.approval?.expiresAt !== undefined && <Deadline at={Date.parse(call.approval.expiresAt)} />}
      </header>
      {doing !== "edit" && <Value of={call.toolInput} />}
      {doing === "edit" && <Editor input={call.toolInput} isSent={isSent} onApprove={approve} onBack={back}>{always}</Editor>}
      {doing === "reason" && <Reason isSent={isSent} onDeny={deny} onBack={back} />}
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {doing === undefined && always}
      {doing === undefined && (
        <div class="actions">
          <button type="button" class="main" ref={first} disabled={isSent} onClick={() => approve()}>{texts.approve}</button>
          <button type="button" disabled={isSent} onClick={() => deny()}>{texts.deny}</button>
          <button type="button" class="quiet" onClick={() => setDoing("edit")}>{texts.edit}</button>
          <button type="button" class="quiet" onClick={() => setDoing("reason")}>{texts.why}</button>
        </div>
      )}
    </div>
  );
}

interface EditorProps {
  /** What the model wrote. */
  input: Json;
  isSent: boolean;
  onApprove: (input: Json) => void;
  onBack: () => void;
  children: ComponentChildren;
}

/** Another input. A mistake has a red edge at once, and a sentence when the person approves: a sentence moves the buttons. */
function Editor({ input, isSent, onApprove, onBack, children }: EditorProps) {
  const original = escaped(JSON.stringify(input, null, 2));
  const [text, setText] = useState(original);
  const [isChecked, setChecked] = useState(false);
  const field = useFirstFocus<HTMLTextAreaElement>();
  const { value, problem } = read(text);
  const approve = () => (value === undefined ? setChecked(true) : onApprove(value));
  return (
    <>
      <textarea
        ref={field}
        class="code"
        aria-label={texts.input}
        aria-invalid={problem !== undefined}
        rows={Math.min(20, text.split("\n").length)}
        spellcheck={false}
        autocapitalize="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && onBack()}
      />
      {isChecked && problem !== undefined && <p role="alert">{problem}</p>}
      {children}
      <div class="actions">
        <button type="button" class="main" disabled={isSent} onClick={approve}>{texts.approveEdited}</button>
        {text !== original && (
          <button type="button" onClick={() => (setText(original), field.current?.focus())}>{texts.reset}</button>
        )}
        <button type="button" class="quiet" onClick={onBack}>{texts.back}</button>
      </div>
    </>
  );
}

/** A denial with a reason. */
function Reason({ isSent, onDeny, onBack }: { isSent: boolean; onDeny: (reason: string) => void; onBack: () => void }) {
  const [reason, setReason] = useState("");
  const field = useFirstFocus<HTMLTextAreaElement>();
  return (
    <>
      <label>
        {texts.reason}
        <textarea
          ref={field}
          rows={2}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && onBack()}
        />
      </label>
      <div class="actions">
        <button type="button" class="main" disabled={isSent} onClick={() => onDeny(reason)}>{texts.deny}</button>
        <button type="button" class="quiet" onClick={onBack}>{texts.back}</button>
      </div>
    </>
  );
}

/** The time that is left, as it runs. */
function Deadline({ at }: { at: number }) {
  const now = useNow(true);
  return <p class="deadline" role="timer">{texts.leftTime(clock(at - now))}</p>;
}

/** A field that somebody asked for has the focus. */
function useFirstFocus<T extends HTMLElement>() {
  const field = useRef<T>(null);
  useEffect(() => field.current?.focus(), []);
  return field;
}

/** The input, or what is wrong with it. */
function read(text: string): { value?: Json; problem?: string } {
  try {
    const value = JSON.parse(text) as Json;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { value } : { problem: texts.noObject };
  } catch {
    return { problem: texts.noJson };
  }
}
