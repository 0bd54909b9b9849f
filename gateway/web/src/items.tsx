/** The items of a conversation, each as people read it. */

import type { Conversation, End, Item, Note, OpenText, ToolCall, WorkPlan } from "everturn-client";
import { memo } from "preact/compat";
import { Markdown } from "./markdown";
import { brief, Fault, Plain, pretty, visible } from "./shown";
import { texts } from "./texts";
import { ToolCard } from "./tool";

interface EntriesProps {
  chat: Conversation;
  items: readonly Item[];
  openTexts: readonly OpenText[];
  /** The sub-agent whose items are wanted; by default those of the turns' own agents. */
  agent?: string;
}

/** Items in their order. What a sub-agent did is shown in the call that started it. */
export function Entries({ chat, items, openTexts, agent }: EntriesProps) {
  const started = new Set(items.flatMap((item) => (item.type === "tool_call" ? (item.subAgent?.agentExecutionId ?? []) : [])));
  // A call that is not known, because it came before the first item, shows nothing: its sub-agent is shown by itself.
  const isOwn = (owner: string | undefined) => (owner !== undefined && started.has(owner) ? owner === agent : agent === undefined);
  const own = items.filter((item) => isOwn(item.agentExecutionId));
  const writing = openTexts.filter((text) => (text.parentToolCallId === undefined ? agent === undefined : isOwn(text.agentExecutionId)));
  const within = (call: ToolCall) =>
    call.subAgent && <Entries chat={chat} items={items} openTexts={openTexts} agent={call.subAgent.agentExecutionId} />;
  return (
    <>
      {groups(own).map((group) =>
        Array.isArray(group) ? (
          <div class="parallel" key={group[0]!.id}>
            {group.map((call) => <ToolCard key={call.id} chat={chat} call={call} within={within(call)} />)}
          </div>
        ) : (
          <Entry key={group.id} item={group} />
        ),
      )}
      {writing.map((text) => <Writing key={`${text.agentExecutionId}/${text.step}/${text.part}`} text={text} />)}
    </>
  );
}

/** Puts calls together that run at the same time. */
function groups(items: readonly Item[]): (ToolCall[] | Exclude<Item, ToolCall>)[] {
  const found: (ToolCall[] | Exclude<Item, ToolCall>)[] = [];
  for (const item of items) {
    const last = found.at(-1);
    if (item.type !== "tool_call") found.push(item);
    else if (Array.isArray(last) && last[0]?.turn === item.turn && last[0]?.step === item.step) last.push(item);
    else found.push([item]);
  }
  return found;
}

/** A text that is being written: a thought or the answer, which shows when it is whole. */
function Writing({ text: { part, text } }: { text: OpenText }) {
  if (part === "reasoning") {
    return <details class="item thought"><summary>{texts.thought}…</summary><Plain text={text} /></details>;
  }
  return (
    <article class="item assistant_message writing" data-writing aria-label={texts.writing}>
      <Markdown text={text} />
    </article>
  );
}

const Entry = memo(function Entry({ item }: { item: Exclude<Item, ToolCall> }) {
  switch (item.type) {
    case "user_message":
      return (
        <article class="item user_message" data-item={item.id} aria-label={texts.you}>
          <Plain text={item.content} />
          {item.attachments !== undefined && <p class="hint">{brief(item.attachments)}</p>}
        </article>
      );
    case "thought":
      return (
        <details class="item thought" data-item={item.id}>
          <summary>{texts.thought}</summary>
          <Markdown text={item.content} />
        </details>
      );
    case "assistant_message":
      return (
        <article class="item assistant_message" data-item={item.id} aria-label={texts.answers}>
          <Markdown text={item.content} />
          {item.partial && <p class="hint">{texts.partial}</p>}
        </article>
      );
    case "tool_result":
      return (
        <details class="item tool" data-item={item.id}>
          <summary>{visible(item.toolName)} · {item.isError ? texts.failed : texts.done}</summary>
          <pre><Plain text={pretty(item.toolOutput)} /></pre>
        </details>
      );
    case "work_plan":
      return <Plan plan={item} />;
    case "note":
      return <NoteLine note={item} />;
    case "end":
      return <EndLine end={item} />;
  }
});

const MARKS: Record<string, string> = { completed: "☑", running: "◐", failed: "☒" };

function Plan({ plan }: { plan: WorkPlan }) {
  return (
    <article class="item plan" data-item={plan.id}>
      <strong>{visible(plan.title)}</strong>
      <ul>
        {plan.steps.map((step) => (
          <li key={step.stepNumber} data-status={step.status}>
            <span role="img" aria-label={step.status}>{MARKS[step.status] ?? "☐"}</span> {visible(step.description)}
          </li>
        ))}
      </ul>
    </article>
  );
}

function NoteLine({ note }: { note: Note }) {
  return (
    <details class="item note" data-item={note.id}>
      <summary>{visible(note.event.replaceAll("_", " "))}</summary>
      <pre><Plain text={pretty(note.data)} /></pre>
    </details>
  );
}

function EndLine({ end }: { end: End }) {
  if (end.outcome === "error") {
    return (
      <p class="item end error" data-item={end.id} role="alert">
        {texts.error}: <Fault code={end.code} message={end.message} />
      </p>
    );
  }
  const parts = [
    end.outcome === "cancelled" ? texts.cancelled : "",
    end.steps === undefined ? "" : texts.steps(end.steps),
    tokensOf(end) === 0 ? "" : texts.tokens(tokensOf(end)),
    end.costUsd === undefined ? "" : `$${end.costUsd}`,
  ];
  return <p class={`item end ${end.outcome}`} data-item={end.id}>{parts.filter((part) => part !== "").join(" · ")}</p>;
}

function tokensOf({ usage }: End): number {
  if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return 0;
  return Number(usage["input_tokens"] ?? 0) + Number(usage["output_tokens"] ?? 0);
}
