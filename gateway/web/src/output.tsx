/** What came of a call: its files, its text, and of a long one as much as somebody asks for. */

import type { Conversation, Json, ToolResult } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { Files, filesOf } from "./files";
import { gistOf } from "./gist";
import { Icon } from "./icons";
import { useKept } from "./kept";
import { More } from "./more";
import { saveAs } from "./save";
import { bytes, exact, Fault, Value, visible } from "./shown";
import { texts } from "./texts";

/** Bytes of a result that are read with each step. */
const SLICE = 32 * 1024;

/** Bytes of a result that are shown. Past it, the result is saved as a file. */
const MOST_SHOWN = 1024 * 1024;

interface OutputProps {
  chat: Conversation;
  value: Json;
  /** Where the rest of a result is read that the event has only the beginning of. */
  executionId?: string | undefined;
}

/** The text of a result. */
export function Output({ chat, value, executionId }: OutputProps) {
  const cut = cutOf(value);
  return (
    <section data-part="output">
      <h3>{cut ? `${texts.output} · ${bytes(cut.total)}` : texts.output}</h3>
      {cut && executionId !== undefined ? (
        <Long chat={chat} executionId={executionId} beginning={cut.text} total={cut.total} />
      ) : (
        <Value of={value} />
      )}
    </section>
  );
}

/** A result of a tool whose call is not known, in a line like that of a call. */
export function ResultCard({ result }: { result: ToolResult }) {
  const [isOpen, setOpen] = useKept(`output ${result.id}`, false);
  const state = result.outcomeUnknown ? "unknown" : result.isError ? "failed" : "done";
  return (
    <div class={`item tool ${state}`} data-item={result.id}>
      <details class="call" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="line">
          <Mark state={state} />
          <span class="what"><strong>{visible(result.toolName)}</strong></span>
          <span class="gist"><bdi>{gistOf(result.toolOutput)}</bdi></span>
        </summary>
        {isOpen && <Value of={result.toolOutput} />}
      </details>
      <Files files={filesOf(result.toolOutput)} />
    </div>
  );
}

const ICONS = { running: "dot", done: "check", failed: "cross", unknown: "question" } as const;

/** How a call does. */
export function Mark({ state }: { state: keyof typeof ICONS }) {
  return <span class="mark" role="img" aria-label={texts[state]}><Icon name={ICONS[state]} /></span>;
}

interface LongProps {
  chat: Conversation;
  executionId: string;
  /** What the event has of it. */
  beginning: string;
  /** Bytes. */
  total: number;
}

/** A result that is too long for its event, slice by slice. */
function Long({ chat, executionId, beginning, total }: LongProps) {
  const [slices, setSlices] = useState<readonly string[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [error, setError] = useState<unknown>();
  const [isReading, setReading] = useState(false);
  const signal = useUnmountSignal();
  const run = (action: () => Promise<void>) => {
    setError(undefined);
    setReading(true);
    action().catch((caught: unknown) => !signal.aborted && setError(caught)).finally(() => setReading(false));
  };
  const more = () =>
    run(async () => {
      const slice = await chat.toolResultSlice(executionId, { offset: next ?? 0, limit: SLICE, signal });
      setSlices([...slices, slice.text]);
      setNext(slice.next_offset ?? null);
    });
  const save = () => run(async () => saveAs(`${executionId}.txt`, await chat.toolResult(executionId, signal), "text/plain"));
  const shown = next === null ? total : next || new TextEncoder().encode(beginning).length;
  return (
    <>
      <pre tabIndex={0}>
        {(slices.length === 0 ? [beginning] : slices).map((slice, at) => <span class="plain" key={at}>{exact(slice)}</span>)}
      </pre>
      <p class="hint slices">
        {texts.shownOf(bytes(shown), bytes(total))}
        {next !== null && next < MOST_SHOWN && (
          <More isBusy={isReading} onMore={more} opens>{texts.more}</More>
        )}
        <More isBusy={isReading} onMore={save}>{texts.save}</More>
      </p>
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
    </>
  );
}

/** The beginning of a result that the event does not have whole, and how many bytes there are (docs/api/tool-calls.md). */
function cutOf(value: Json): { text: string; total: number } | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value["truncated"] !== true) return undefined;
  const { text, total_bytes: total } = value;
  return typeof text === "string" && typeof total === "number" ? { text, total } : undefined;
}

/** Ends the requests of a component that is gone. */
function useUnmountSignal(): AbortSignal {
  const controller = useRef<AbortController | undefined>(undefined);
  controller.current ??= new AbortController();
  useEffect(() => () => controller.current?.abort(), []);
  return controller.current.signal;
}
