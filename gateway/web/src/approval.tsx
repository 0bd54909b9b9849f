/** A call that waits for a person: whether the call may run, with which input, and until when somebody can answer. */

import type { api, ApprovalRequest, Conversation, ToolCall } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Deadline } from "./deadline";
import { QuestionCard } from "./question";
import { useSending } from "./sending";
import { escaped, Fault, isolated, Text, visible } from "./shown";
import { texts } from "./texts";

/** What the person does beside a plain answer. */
type Doing = "edit" | "reason";

/** A call as a person is asked about it. */
export interface Asked {
  readonly request: ApprovalRequest;
  readonly toolName: string;
  /** The input as the store has it, character for character. This very text runs. */
  readonly inputText: string;
  readonly expiresAt?: string | undefined;
  /** `other`: another person than the one who asked must approve. */
  readonly by?: string | undefined;
  /** Inputs that other people propose. */
  readonly proposals?: readonly api.ProposedInput[] | undefined;
  /** The question of a tool that runs. Absent when the person is to allow the call. */
  readonly question?: AskedQuestion | undefined;
}

/** A question, whose schema a foreign server wrote. */
export interface AskedQuestion {
  readonly message: string;
  readonly schema?: unknown;
  readonly url?: string | undefined;
}

/** The question about a call of a conversation. */
export function askedAbout(call: ToolCall): Asked {
  const { inputText, expiresAt, approvalBy, question } = call.approval ?? {};
  const text = inputText ?? JSON.stringify(call.toolInput);
  return { request: call, toolName: call.toolName, inputText: text, expiresAt, by: approvalBy, question };
}

/** What a card needs. */
export interface ApprovalProps {
  chat: Conversation;
  asked: Asked;
  onAnswered?: () => void;
}

/** Asks a person. The first answer counts, in whichever tab it was given. The next question of a call has a card of its own. */
export function ApprovalCard(props: ApprovalProps) {
  const { request, question } = props.asked;
  const hash = "execution_id" in request ? request.input_hash : request.approval?.inputHash;
  if (question !== undefined) return <QuestionCard key={hash} {...props} question={question} />;
  return <CallCard key={hash} {...props} />;
}

function CallCard({ chat, asked, onAnswered }: ApprovalProps) {
  const [isProposed, setProposed] = useState(false);
  const [doing, setDoing] = useState<Doing>();
  const [isRemembered, setRemembered] = useState(false);
  const { error, isSent, send, forget } = useSending();
  const first = useRef<HTMLButtonElement>(null);
  const answer = (action: () => Promise<api.AnsweredApproval>) => {
    send(action, ({ decision }) => {
      const isProposed = decision === "proposed";
      if (isProposed) {
        setProposed(true);
        setDoing(undefined);
      }
      onAnswered?.();
      return isProposed;
    });
  };
  const { request, by } = asked;
  const mayRemember = by === undefined;
  const approve = (toolInputText?: string) => {
    const options = { ...(toolInputText !== undefined && { toolInputText }), ...(isRemembered && mayRemember && { remember: true }) };
    answer(() => chat.approve(request, options));
  };
  const deny = (reason = "") => answer(() => chat.deny(request, reason.trim() === "" ? {} : { reason }));
  const back = () => {
    setDoing(undefined);
    forget();
    // The button is there after the next drawing.
    requestAnimationFrame(() => first.current?.focus());
  };
  const always = mayRemember && (
    <label class="always">
      <input type="checkbox" checked={isRemembered} onChange={(event) => setRemembered(event.currentTarget.checked)} />
      <span>{texts.always(visible(asked.toolName))}</span>
    </label>
  );
  return (
    <div class="approval" role="group" aria-label={texts.approval}>
      <header>
        <p class="asked">{texts.approval}</p>
        {asked.expiresAt !== undefined && <Deadline at={Date.parse(asked.expiresAt)} />}
      </header>
      {!mayRemember && <p class="hint">{texts.needsOther}</p>}
      {doing !== "edit" && <Text text={asked.inputText} />}
      {doing === "edit" && <Editor input={asked.inputText} isSent={isSent} onApprove={approve} onBack={back}>{always}</Editor>}
      {doing === "reason" && <Reason isSent={isSent} onDeny={deny} onBack={back} />}
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {isProposed && <p role="status">{texts.proposed}</p>}
      {doing === undefined && asked.proposals?.map((proposal) => {
        const second = () => answer(() => chat.approve(bound(request, proposal)));
        return <Proposal key={proposal.input_hash} proposal={proposal} isSent={isSent} onApprove={second} />;
      })}
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

/** An input that another person proposes, for a second person to approve. */
function Proposal({ proposal, isSent, onApprove }: { proposal: api.ProposedInput; isSent: boolean; onApprove: () => void }) {
  return (
    <section class="proposal">
      <p>{texts.proposedBy(isolated(proposal.proposed_by))}</p>
      <Text text={proposal.input_text} />
      <div class="actions"><button type="button" disabled={isSent} onClick={onApprove}>{texts.approveProposal}</button></div>
    </section>
  );
}

/** The request to approve a proposed input in place of the model's. */
function bound(request: ApprovalRequest, { input_hash }: api.ProposedInput): ApprovalRequest {
  if ("execution_id" in request) return { ...request, input_hash };
  return { ...request, approval: { state: "pending", ...request.approval, inputHash: input_hash } };
}

interface EditorProps {
  /** What the model wrote, as the store has it. */
  input: string;
  isSent: boolean;
  onApprove: (input: string) => void;
  onBack: () => void;
  children: ComponentChildren;
}

/** Another input. A mistake has a red edge at once, and a sentence when the person approves: a sentence moves the buttons. */
function Editor({ input, isSent, onApprove, onBack, children }: EditorProps) {
  const original = escaped(input);
  const [text, setText] = useState(original);
  const [isChecked, setChecked] = useState(false);
  const field = useFirstFocus<HTMLTextAreaElement>();
  const problem = problemOf(text);
  // The text is sent as it is: a parsed number of many digits would be another number.
  const approve = () => (problem === undefined ? onApprove(text) : setChecked(true));
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

/** A field that somebody asked for has the focus. */
function useFirstFocus<T extends HTMLElement>() {
  const field = useRef<T>(null);
  useEffect(() => field.current?.focus(), []);
  return field;
}

/** What is wrong with an input. */
function problemOf(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? undefined : texts.noObject;
  } catch {
    return texts.noJson;
  }
}
