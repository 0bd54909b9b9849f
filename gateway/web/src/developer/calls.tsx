/** The LLM calls of an agent execution: why tries gave no answer, and what the model was sent and answered. */

import { type api, type Conversation, EverturnError } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { More } from "../more";
import { Fault, Plain, Value, visible } from "../shown";
import { texts } from "../texts";
import { clock, took, tokenText } from "./format";
import { FoldedJson } from "./json";
import { Table } from "./table";

/** Calls that are read at once. */
const PAGE = 50;

interface CallsProps {
  chat: Conversation;
  executionId: string;
  /** How far the agent execution is. The calls are read again with another one. */
  version: string;
}

/** The calls of an agent execution in pages, and the call that has no answer. */
export function Calls({ chat, executionId, version }: CallsProps) {
  const [count, setCount] = useState(PAGE);
  const { found, error, isReading } = useCalls(chat, executionId, `${version}/${count}`, count);
  if (error !== undefined) return <p role="alert"><Fault error={error} /></p>;
  if (!found) return null;
  return (
    <section class="calls" aria-label={texts.developer.sentAndAnswered}>
      <h4>{texts.developer.sentAndAnswered}</h4>
      {found.calls.map((call) => <Call key={call.step} chat={chat} executionId={executionId} call={call} />)}
      {found.hasMore && <More isBusy={isReading} onMore={() => setCount(count + PAGE)}>{texts.developer.moreCalls}</More>}
      {found.unanswered && (
        <div class="unanswered" data-step={found.unanswered.step}>
          <p><strong>{texts.developer.llmCall(found.unanswered.step)}</strong> <span class="hint">{texts.developer.noAnswer}</span></p>
          <Tries tries={found.unanswered.tries} />
        </div>
      )}
    </section>
  );
}

interface Found {
  readonly calls: readonly api.ModelCall[];
  readonly unanswered: api.UnansweredCall | null;
  readonly hasMore: boolean;
}

function useCalls(chat: Conversation, id: string, version: string, count: number) {
  const [found, setFound] = useState<Found>();
  const [error, setError] = useState<unknown>();
  const [isReading, setReading] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    setReading(true);
    readCalls(chat, id, count, stop.signal)
      .then(setFound, (caught: unknown) => !stop.signal.aborted && setError(caught))
      .finally(() => setReading(false));
    return () => stop.abort();
  }, [chat, id, version]);
  return { found, error, isReading };
}

async function readCalls(chat: Conversation, id: string, count: number, signal: AbortSignal): Promise<Found> {
  const calls: api.ModelCall[] = [];
  let after: number | undefined;
  for (;;) {
    const page = await chat.calls(id, { limit: PAGE, signal, ...(after !== undefined && { after }) });
    calls.push(...page.calls);
    const next = page.next_after;
    if (next === null || calls.length >= count) return { calls, unanswered: page.unanswered, hasMore: next !== null };
    after = next;
  }
}

function Call({ chat, executionId, call }: { chat: Conversation; executionId: string; call: api.ModelCall }) {
  const [isOpen, setOpen] = useState(false);
  const words = texts.developer;
  const failed = call.tries.failed.length + call.tries.older;
  const parts = [
    visible(`${call.provider}/${call.model}`), call.finish, call.duration_ms === null ? "" : took(call.duration_ms),
    tokenText(call.usage as never), call.cost_usd ? `$${call.cost_usd}` : "", failed > 0 ? words.failedTries(failed) : "",
  ];
  return (
    <details data-step={call.step} onToggle={(event) => event.currentTarget === event.target && setOpen(event.currentTarget.open)}>
      <summary>
        <strong>{words.llmCall(call.step)}</strong> <span class="hint">{parts.filter((part) => part !== "").join(" · ")}</span>
      </summary>
      {isOpen && (
        <div class="nested">
          <Tries tries={call.tries} />
          <Content chat={chat} executionId={executionId} step={call.step} />
        </div>
      )}
    </details>
  );
}

function Tries({ tries }: { tries: api.CallTries }) {
  const words = texts.developer;
  return (
    <>
      {tries.older > 0 && <p class="hint">{words.olderTries(tries.older)}</p>}
      <Table
        label={words.triesWithoutAnswer}
        columns={[words.generation, words.model, words.outcome, words.why, words.takes, words.nextTry, words.time]}
        rows={tries.failed.map((it) => [
          it.generation, visible(it.model), visible(it.code), visible(it.reason), took(it.duration_ms),
          it.is_final ? "–" : it.retry_after_ms === null ? "" : took(it.retry_after_ms), clock(it.started_at),
        ])}
      />
    </>
  );
}

function Content({ chat, executionId, step }: { chat: Conversation; executionId: string; step: number }) {
  const [content, setContent] = useState<api.ModelCallContent>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const stop = new AbortController();
    chat.call(executionId, step, stop.signal).then(setContent, (caught: unknown) => !stop.signal.aborted && setError(caught));
    return () => stop.abort();
  }, [chat, executionId, step]);
  if (error instanceof EverturnError && error.code === "insufficient_scope") return <p class="hint">{texts.developer.needsCalls}</p>;
  if (error !== undefined) return <p role="alert"><Fault error={error} /></p>;
  if (!content) return <p class="hint">{texts.loading}</p>;
  return (
    <>
      {content.sent && <Sent sent={content.sent} />}
      <Answered answered={content.answered} />
      <FoldedJson label={texts.developer.record} value={content} />
    </>
  );
}

function Sent({ sent }: { sent: api.SentToModel }) {
  const words = texts.developer;
  return (
    <section aria-label={words.sent}>
      <h5>{words.sent}</h5>
      {!sent.is_exact && <p class="hint">{words.notExact}</p>}
      {sent.instructions !== "" && <Part label={words.instructions} text={sent.instructions} />}
      {sent.summary_through !== null && <p class="hint">{words.summaryThrough(sent.summary_through)}</p>}
      {sent.older_messages > 0 && <p class="hint">{words.olderMessages(sent.older_messages)}</p>}
      {sent.messages.map((message, at) => (
        <Part key={at} label={words.roles[message.role] ?? message.role} text={message.content}>
          {message.tool_calls.length > 0 && <Value of={message.tool_calls as never} />}
          {message.tool_results.length > 0 && <Value of={message.tool_results as never} />}
          {message.attachments.length > 0 && <Value of={message.attachments as never} />}
        </Part>
      ))}
      {sent.tools.length > 0 && <p class="hint">{words.offered(visible(sent.tools.map(({ name }) => name).join(", ")))}</p>}
    </section>
  );
}

function Answered({ answered }: { answered: api.AnsweredByModel }) {
  const words = texts.developer;
  return (
    <section aria-label={words.answered}>
      <h5>{words.answered}</h5>
      {answered.reasoning !== "" && <Part label={words.reasoning} text={answered.reasoning} />}
      <Part label={texts.answers} text={answered.text}>
        {answered.tool_calls.length > 0 && <Value of={answered.tool_calls as never} />}
      </Part>
    </section>
  );
}

function Part({ label, text, children }: { label: string; text: string; children?: ComponentChildren }) {
  return (
    <div class="part">
      <p class="hint">{label}</p>
      {text !== "" && <pre tabIndex={0}><Plain text={text} /></pre>}
      {children}
    </div>
  );
}
