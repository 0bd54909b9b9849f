/** A call of a tool: what it is given, how it does, what came of it, and the question whether it may run. */

import type { Conversation, Json, ToolCall } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApprovalCard } from "./approval";
import { ClientToolCard } from "./clienttool";
import { Output } from "./output";
import { brief, duration, Value, visible } from "./shown";
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
