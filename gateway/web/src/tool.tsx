/** A call of a tool in a line: what the tool is, how the call does, what came of it. The rest is there on demand. */

import type { Approval, Conversation, ToolCall } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { ApprovalCard, askedAbout } from "./approval";
import { ClientToolCard } from "./clienttool";
import { Clock } from "./clock";
import { Files, filesOf } from "./files";
import { gistOf } from "./gist";
import { useKept } from "./kept";
import { isOpen, OutcomeCard } from "./outcome";
import { Mark, Output } from "./output";
import { brief, duration, isRounded, Text, Value, visible } from "./shown";
import { texts } from "./texts";

interface ToolCardProps {
  chat: Conversation;
  call: ToolCall;
  /** What the sub-agent did that the call started. */
  within?: ComponentChildren;
}

export function ToolCard({ chat, call, within }: ToolCardProps) {
  const asked = askedOf(call);
  return (
    <article class={`item tool ${call.state}`} data-item={call.id} data-state={call.state}>
      {asked ? <div class="line"><Line call={call} asked={asked} /></div> : <Folded chat={chat} call={call} />}
      {asked === "approval" && <ApprovalCard chat={chat} asked={askedAbout(call)} />}
      {asked === "client" && <ClientToolCard chat={chat} call={call} />}
      {isOpen(call) && <OutcomeCard chat={chat} call={call} />}
      {call.subAgent && (
        <details class="nested" open>
          <summary>
            {texts.subAgent(visible(call.subAgent.agent))}: <bdi>{brief(call.subAgent.task)}</bdi>{" "}
            <span class="hint">{texts.triggeredBy(visible(call.toolName))}</span>
          </summary>
          {within}
        </details>
      )}
      <Files files={filesOf(call.toolOutput)} />
    </article>
  );
}

/** The words for a call in a line: the title from the tool's template, or else the tool's name. */
export function titleOf({ title, toolName }: Pick<ToolCall, "title" | "toolName">): string {
  return visible(title ?? toolName);
}

/** Whom a call asks: a person whether it may run, or a client to run it. */
export function askedOf({ state, approval, clientTool }: ToolCall): "approval" | "client" | undefined {
  if (state !== "running") return undefined;
  if (approval?.state === "pending") return "approval";
  return clientTool ? "client" : undefined;
}

/** The line, which opens to the whole of the input and of the result. */
function Folded({ chat, call }: { chat: Conversation; call: ToolCall }) {
  const [isOpen, setOpen] = useKept(`call ${call.id}`, false);
  return (
    <details class="call" open={isOpen} onToggle={(event) => event.currentTarget === event.target && setOpen(event.currentTarget.open)}>
      <summary class="line"><Line call={call} /></summary>
      {isOpen && (
        <>
          <section data-part="input">
            <h3>{texts.input} {call.title !== undefined && <code>{visible(call.toolName)}</code>}</h3>
            {call.approval?.inputText === undefined ? <Value of={call.toolInput} /> : <Text text={call.approval.inputText} />}
          </section>
          {call.approval?.question && <Answered approval={call.approval} />}
          {call.toolOutput !== undefined && <Output chat={chat} value={call.toolOutput} executionId={call.executionId} />}
        </>
      )}
    </details>
  );
}

/** The last question of the call, and the person's answer. */
function Answered({ approval: { question, answer } }: { approval: Approval }) {
  return (
    <section data-part="question">
      <h3>{texts.question.title}</h3>
      <Text text={question?.message ?? ""} />
      {question?.url !== undefined && <Text text={question.url} />}
      {answer !== undefined && <Value of={answer} />}
      {isRounded(answer) && <p class="hint">{texts.question.exact}</p>}
    </section>
  );
}

function Line({ call, asked }: { call: ToolCall; asked?: "approval" | "client" }) {
  const gist = useMemo(() => gistOfCall(call, asked), [call, asked]);
  const hasTitle = call.title !== undefined;
  const decided = asked === "approval" ? "" : decidedOf(call.approval);
  const decision = texts.decisions[decided] ?? visible(decided);
  return (
    <>
      <Mark state={call.state} />
      <span class="what">
        <strong>{titleOf(call)}</strong>
        {call.subAgent && !hasTitle && <span class="agent">→ <bdi>{visible(call.subAgent.agent)}</bdi></span>}
        {call.hook && <span class="hint">{visible(call.hook)}</span>}
        {hasTitle ? <code class="brief">{visible(call.toolName)}</code> : !asked && !call.subAgent && <code class="brief">{brief(call.toolInput)}</code>}
      </span>
      <span class="gist"><bdi>{gist}</bdi></span>
      <span class="outcome">
        {decision !== "" && <span class="decision">{decision}</span>}
        {call.state === "running" && asked !== "approval" && <Clock since={call.timestamp} />}
        {call.durationMs !== undefined && <span class="clock">{duration(call.durationMs)}</span>}
      </span>
    </>
  );
}

/** A question is answered, and not approved. */
function decidedOf(approval: Approval | undefined): string {
  const { state = "", question } = approval ?? {};
  return question !== undefined && state === "approved" ? "answered" : state;
}

/** What came of the call, or that a person is to allow it or to answer it. */
function gistOfCall(call: ToolCall, asked: "approval" | "client" | undefined): string {
  if (asked === "approval") return call.approval?.question ? texts.question.waits : texts.waitsForApproval;
  if (call.state === "running") return "";
  // The result of such a call is a sentence for the model.
  if (call.approval?.state === "denied") return visible(call.approval.reason ?? "");
  const gist = gistOf(call.toolOutput, call.toolInput);
  if (gist === "" && call.state !== "done") return texts[call.state];
  // An agent answers in Markdown, which a line does not draw.
  return call.subAgent ? gist.replaceAll(/\*\*|`/g, "") : gist;
}
