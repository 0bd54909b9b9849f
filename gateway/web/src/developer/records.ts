/** What is recorded of the agent executions of a turn. */

import type { api, Conversation, TurnRow } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";

/** Agent executions of a turn that are read at the most, and those of them whose records are read without being asked for. */
const MAX_EXECUTIONS = 1000;
const MAX_DETAILS = 24;
/** Milliseconds between two readings of a turn that runs. */
const PAUSE_MS = 1000;

/** The agent executions of a turn, in the order in which they began, with the records of the first of them by id. */
export interface Records {
  readonly executions: readonly api.AgentExecution[];
  readonly details: ReadonlyMap<string, api.AgentExecutionDetail>;
}

/** What is recorded of a row of the waterfall, beside what events say. */
export interface Facts {
  readonly step?: api.StepUsage | undefined;
  /** How often the model was called for the step. */
  readonly tries?: number | undefined;
  readonly tool?: api.ToolExecution | undefined;
}

/** What was read, and why that failed. */
interface Found {
  readonly records?: Records | undefined;
  readonly error?: unknown;
}

/** Reads the records of a turn, and again when `version` is another one, which says how far the turn is. */
export function useRecords(chat: Conversation, messageId: string, version: string): Found {
  const [found, setFound] = useState<Found>({});
  const reader = useRef<Reader | undefined>(undefined);
  useEffect(() => {
    const own = new Reader(chat, messageId, setFound);
    reader.current = own;
    return () => own.stop();
  }, [chat, messageId]);
  useEffect(() => reader.current?.want(version), [chat, messageId, version]);
  return found;
}

/** Reads once at a time, and not more often than each second, however fast a turn goes. */
class Reader {
  readonly #chat: Conversation;
  readonly #messageId: string;
  readonly #show: (found: Found) => void;
  readonly #stop = new AbortController();
  #records: Records | undefined;
  #wanted = "";
  #isBusy = false;

  constructor(chat: Conversation, messageId: string, show: (found: Found) => void) {
    this.#chat = chat;
    this.#messageId = messageId;
    this.#show = show;
  }

  want(version: string): void {
    this.#wanted = version;
    if (!this.#isBusy) void this.#read();
  }

  stop(): void {
    this.#stop.abort();
  }

  async #read(): Promise<void> {
    this.#isBusy = true;
    const { signal } = this.#stop;
    let read: string | undefined;
    while (read !== this.#wanted && !signal.aborted) {
      read = this.#wanted;
      let error: unknown;
      try {
        this.#records = await readRecords(this.#chat, this.#messageId, this.#records, signal);
      } catch (caught) {
        error = caught;
      }
      if (!signal.aborted) this.#show({ records: this.#records, error });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    this.#isBusy = false;
  }
}

async function readRecords(chat: Conversation, messageId: string, known: Records | undefined, signal: AbortSignal): Promise<Records> {
  const executions: api.AgentExecution[] = [];
  let after: string | null | undefined;
  do {
    const place = after === undefined || after === null ? {} : { after };
    const page = await chat.executions({ messageId, limit: 200, signal, ...place });
    executions.push(...page.executions);
    after = page.next_after;
  } while (after && executions.length < MAX_EXECUTIONS);
  const details = new Map<string, api.AgentExecutionDetail>();
  for (const { id } of executions.slice(0, MAX_DETAILS)) {
    const before = known?.details.get(id);
    // What has ended does not change any more.
    details.set(id, before?.finished_at ? before : await chat.execution(id, signal));
  }
  return { executions, details };
}

/** What is recorded of a row. */
export function factsOf(row: TurnRow, records: Records | undefined): Facts {
  const root = records?.executions.find((execution) => execution.depth === 0)?.id;
  const record = records?.details.get(row.agentExecutionId ?? root ?? "");
  if (!record || row.kind === "note") return {};
  if (row.kind === "tool") {
    return { tool: record.tool_executions.find((tool) => tool.execution_id === row.executionId) };
  }
  const at = record.step_usage.findIndex((step) => step.step === row.step);
  const step = record.step_usage[at];
  if (!step) return {};
  // Of the steps before the first one that is listed nothing is known.
  const before = at > 0 ? record.step_usage[at - 1]!.generation : step.step === 0 ? 0 : undefined;
  return { step, tries: before === undefined ? undefined : step.generation - before };
}
