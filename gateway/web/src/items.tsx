/** The items of a conversation, each as people read it. */

import {
  type AssistantMessage,
  type Conversation,
  type End,
  type Item,
  type OpenText,
  type Thought,
  type ToolCall,
  type WorkPlan,
  type WrittenCall,
  writtenCall,
} from "everturn-client";
import { memo } from "preact/compat";
import { useRef } from "preact/hooks";
import { Sources } from "./citations";
import { Files, filesOf } from "./files";
import { CopyButton } from "./copy";
import { useKept } from "./kept";
import { Markdown } from "./markdown";
import { aboutMark, money } from "./money";
import { NoteLine } from "./notes";
import { ResultCard } from "./output";
import { callsOf, isSameRow, type Row, type Rows, rowsWithin, textsBelow } from "./rows";
import { Fault, Plain, visible } from "./shown";
import { texts } from "./texts";
import { titleOf, ToolCard } from "./tool";

/** Characters of a call's arguments that are shown while the model writes them. */
const WRITTEN_CHARS = 600;

/** Rows of a sub-agent that are shown at first, and more with each step. */
const NESTED = 30;

interface RowProps {
  chat: Conversation;
  row: Row;
  /** All rows, of which some belong into this one. */
  rows: Rows;
  openTexts: readonly OpenText[];
}

/** One row. What a sub-agent did is shown in the call that started it. */
export const RowView = memo(function RowView({ chat, row, rows, openTexts }: RowProps) {
  const calls = callsOf(row);
  if (!calls) return <Entry item={row.items[0] as Exclude<Item, ToolCall>} />;
  const card = (call: ToolCall) => (
    <ToolCard
      key={call.id}
      chat={chat}
      call={call}
      within={call.subAgent && <Nested chat={chat} agent={call.subAgent.agentExecutionId} rows={rows} openTexts={openTexts} />}
    />
  );
  return <div class="parallel">{calls.map(card)}</div>;
}, isSameView);

/** A row with sub-agents in it also shows what is in other rows. */
function isSameView(one: RowProps, other: RowProps): boolean {
  if (one.chat !== other.chat || !isSameRow(one.row, other.row)) return false;
  const isAlone = !callsOf(other.row)?.some((call) => call.subAgent);
  return isAlone || (one.rows === other.rows && one.openTexts === other.openTexts);
}

/** What a sub-agent did: the last of it, and on demand what came before. */
function Nested({ agent, ...props }: Omit<RowProps, "row"> & { agent: string }) {
  const [count, setCount] = useKept(`nested ${agent}`, NESTED);
  const all = rowsWithin(props.rows, agent);
  return (
    <>
      {all.length > count && (
        <button type="button" class="quiet" data-opens onClick={() => setCount(count + NESTED)}>
          {texts.earlierRows(all.length - count)}
        </button>
      )}
      {all.slice(-count).map((row) => <RowView key={row.key} {...props} row={row} />)}
      {textsBelow(props.rows, props.openTexts, agent).map((text) => <Writing key={`${text.step}/${text.part}`} text={text} />)}
    </>
  );
}

/** A text that a model writes: reasoning, the text before tools, or the answer. */
export function Writing({ text: open }: { text: OpenText }) {
  const { part, text, generation } = open;
  const first = useRef(generation);
  // An attempt that failed is written anew, from its beginning.
  const isAgain = generation > first.current && <p class="hint">{texts.again}</p>;
  const call = writtenCall(open);
  if (call) return call.toolName === "" ? null : <>{isAgain}<WritingCall call={call} /></>;
  if (part === "reasoning") {
    return (
      <>
        {isAgain}
        <details class="item thought"><summary>{texts.thought}…</summary><Plain text={text} /></details>
      </>
    );
  }
  return (
    <>
      {isAgain}
      <article class="item assistant_message writing" data-writing aria-label={texts.writing}>
        <Markdown text={text} isWriting />
      </article>
    </>
  );
}

/** A tool call that a model writes: the end of its arguments, and their size, so that a long file is no silence. */
function WritingCall({ call: { toolName, toolInput } }: { call: WrittenCall }) {
  return (
    <details class="item thought" data-writing-call open>
      <summary>{texts.writesCall(visible(toolName), toolInput.length)}</summary>
      <Plain text={toolInput.slice(-WRITTEN_CHARS)} />
    </details>
  );
}

function Entry({ item }: { item: Exclude<Item, ToolCall> }) {
  switch (item.type) {
    case "user_message":
      if (item.retryOf !== undefined) return <p class="hint" data-item={item.id}>{texts.retried}</p>;
      return (
        <div class="item user_message" data-item={item.id}>
          <Plain text={item.content} />
          <Files files={filesOf(item.attachments)} />
        </div>
      );
    case "thought":
      return <Before item={item} />;
    case "assistant_message":
      return <Answer item={item} />;
    case "tool_result":
      return <ResultCard result={item} />;
    case "work_plan":
      return <Plan plan={item} />;
    case "note":
      return <NoteLine note={item} />;
    case "end":
      return <EndLine end={item} />;
  }
}

/** The words before the tools of a step: the reasoning is folded, and the text stays as the reader saw the model write it. */
function Before({ item: { id, content, reasoning, citations } }: { item: Thought }) {
  const [isOpen, setOpen] = useKept(`thought ${id}`, false);
  return (
    <>
      {reasoning !== undefined && (
        <details class="item thought" data-item={id} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{texts.thought}</summary>
          <Markdown text={reasoning} />
        </details>
      )}
      {isSaid(content) && <div class="item said" data-item={id}><Markdown text={content} /></div>}
      <Sources of={id} citations={citations} />
    </>
  );
}

function isSaid(content: string): boolean {
  return content.trim() !== "";
}

function Answer({ item }: { item: AssistantMessage }) {
  const why = item.partial ? texts.partial : texts.finish[item.finish ?? ""];
  return (
    <>
      <div class="item assistant_message" data-item={item.id}>
        <Markdown text={item.content} />
      </div>
      {why && <p class="hint">{why}</p>}
      <Sources of={item.id} citations={item.citations} />
      <p class="after"><CopyButton text={item.content} label={texts.copyAnswer} /></p>
    </>
  );
}

const MARKS: Record<string, string> = { completed: "☑", running: "◐", failed: "☒" };

function Plan({ plan }: { plan: WorkPlan }) {
  return (
    <div class="item plan" data-item={plan.id}>
      <strong><bdi>{visible(plan.title)}</bdi></strong>
      <ul>
        {plan.steps.map((step) => (
          <li key={step.stepNumber} data-status={step.status}>
            <span role="img" aria-label={texts.planStep[step.status] ?? step.status}>{MARKS[step.status] ?? "☐"}</span>{" "}
            <bdi>{visible(step.description)}</bdi>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** How a turn or a sub-agent ended, and what it took. */
function EndLine({ end }: { end: End }) {
  const about = aboutMark(end.usage);
  const parts = [
    end.outcome === "cancelled" ? texts.cancelled : "",
    end.steps === undefined ? "" : texts.steps(end.steps),
    tokensOf(end) === 0 ? "" : about + texts.tokens(tokensOf(end)),
    end.costUsd === undefined ? "" : about + money(Number(end.costUsd)),
  ];
  const took = parts.filter((part) => part !== "").join(" · ");
  if (end.outcome !== "error") return <p class={`item end ${end.outcome}`} data-item={end.id}>{visible(took)}</p>;
  return (
    <div class="item end error" data-item={end.id}>
      <p role="alert">{texts.error}: <Fault code={end.code} message={end.message} /></p>
      {took !== "" && <p class="hint">{visible(took)}</p>}
    </div>
  );
}

function tokensOf({ usage }: End): number {
  if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return 0;
  return (Number(usage["input_tokens"]) || 0) + (Number(usage["output_tokens"]) || 0);
}

/** What a row is called, for those who do not see it. */
export function nameOf(row: Row): string {
  const [item] = row.items;
  switch (item?.type) {
    case "user_message":
      return item.retryOf === undefined ? texts.you : texts.note;
    case "assistant_message":
      return texts.answers;
    case "thought":
      return isSaid(item.content) ? texts.says : texts.thought;
    case "tool_call":
    case "tool_result":
      return (row.items as ToolCall[]).slice(0, 5).map(titleOf).join(", ");
    case "work_plan":
      return texts.plan;
    case "end":
      return texts.end;
    default:
      return texts.note;
  }
}

const ESTIMATES: Record<Item["type"], number> = {
  user_message: 60,
  thought: 36,
  tool_call: 38,
  tool_result: 38,
  assistant_message: 130,
  work_plan: 130,
  note: 36,
  end: 30,
};

/** About how many pixels high a row is. */
export function estimateOf(row: Row): number {
  return row.items.length * ESTIMATES[row.items[0]?.type ?? "note"];
}

/** Calls that run stay in the document: somebody may be writing an answer to one. */
export function mustStay(row: Row): boolean {
  return callsOf(row)?.some((call) => call.state === "running") ?? false;
}
