/** A call of a tool: what it is given, how it does, what came of it, and the question whether it may run. */

import type { Conversation, Json, ToolCall } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ClientToolCard } from "./clienttool";
import { Output } from "./output";
import { brief, duration, Fault, Value, visible } from "./shown";
import { texts } from "./texts";

interface ToolCardProps {
  chat: Conversation;
  call: ToolCall;
  /** What the sub-agent did that the call started. */
  within?: ComponentChildren;
}

export function ToolCard({ chat, call, within }: ToolCardProps) {
  const waits = call.state === "running" && call.approval?.state === "pending";
  return (
    <article class={`item tool ${call.state}`} data-item={call.id} data-state={call.state}>
      <header>
        <strong>{visible(call.toolName)}</strong> {call.hook && <span class="hint">{visible(call.hook)}</span>} <code class="brief">{brief(call.toolInput)}</code>
        <span class="outcome">
          {texts[call.state]}
          {call.durationMs !== undefined && ` · ${duration(call.durationMs)}`}
          {call.approval && !waits && ` · ${visible(call.approval.state)}`}
        </span>
      </header>
      {!waits && <Folded label={texts.input} value={call.toolInput} />}
      {call.clientTool && call.state === "running" && !waits && <ClientToolCard chat={chat} call={call} />}
      {waits && <ApprovalCard chat={chat} call={call} />}
      {call.subAgent && (
        <details class="nested" open>
          <summary>{texts.subAgent(visible(call.subAgent.agent))}: <bdi>{brief(call.subAgent.task)}</bdi></summary>
          {within}
        </details>
      )}
      {call.toolOutput !== undefined && (
        <Output chat={chat} name={call.id} value={call.toolOutput} executionId={call.executionId} />
      )}
    </article>
  );
}

function Folded({ label, value }: { label: string; value: Json }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && <Value of={value} />}
    </details>
  );
}

/** Asks a person. The first answer counts, in whichever tab it was given. */
function ApprovalCard({ chat, call }: { chat: Conversation; call: ToolCall }) {
  const [edited, setEdited] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [isSent, setSent] = useState(false);
  const answer = (action: () => Promise<unknown>) => {
    setSent(true);
    setError(undefined);
    action().catch((caught: unknown) => {
      setError(caught);
      setSent(false);
    });
  };
  const approve = () =>
    answer(async () => {
      if (edited === undefined) return chat.approve(call);
      return chat.approve(call, { toolInput: parsed(edited) });
    });
  return (
    <div class="approval" role="group" aria-label={texts.approval}>
      <p>{texts.approval}</p>
      {edited === undefined ? (
        <Value of={call.toolInput} />
      ) : (
        <textarea aria-label={texts.input} rows={5} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />
      )}
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <button type="button" disabled={isSent} onClick={approve}>
        {edited === undefined ? texts.approve : texts.approveEdited}
      </button>{" "}
      <button type="button" disabled={isSent} onClick={() => answer(() => chat.deny(call))}>{texts.deny}</button>{" "}
      {edited === undefined && (
        <button type="button" class="quiet" onClick={() => setEdited(JSON.stringify(call.toolInput, null, 2))}>{texts.edit}</button>
      )}
    </div>
  );
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error(texts.noJson);
  }
}
