/**
 * Where the time of a turn went: its LLM calls, its tools and its sub-agents as rows on one time axis, from the items that a
 * client has of it. The rules are those of the shared transcripts.
 */

import { present } from "./fields.js";
import type { End, Item, ItemBase, Note, ToolCall } from "./state.js";

/** A turn, or what is known of it. Times are in milliseconds since 1970. */
export interface TurnRows {
  /** The message id. */
  readonly id: string;
  /** The number of its first event that is known. */
  readonly sequenceNumber: number;
  /** What the user said; absent when it came before the events that are known. */
  readonly said?: string;
  readonly started: number;
  /** Absent while it runs. */
  readonly ended?: number;
  readonly end?: End;
  /** What took time, in order. */
  readonly rows: readonly TurnRow[];
}

/** One thing that took time. */
export interface TurnRow {
  readonly kind: "llm_call" | "tool" | "note";
  /** 0 is the turn's own agent, 1 a sub-agent of it, and so on. */
  readonly depth: number;
  /** The tool, or the type of a note's event; `""` for an LLM call. */
  readonly name: string;
  /** The agent that the tool call started. */
  readonly agent?: string;
  /** The LLM call of its agent execution, from 0: this one, or the one that asked for the tool. */
  readonly step?: number;
  /** Of a sub-agent: its agent execution. */
  readonly agentExecutionId?: string;
  /** Of a tool call: the tool execution. */
  readonly executionId?: string;
  /** The id of the item that it is, or that an LLM call ended with; absent for an LLM call that has not ended. */
  readonly item?: string;
  /** When it was asked for. */
  readonly started: number;
  /** When it began to run; absent when it has not, as far as is known. */
  readonly ranFrom?: number;
  /** Absent while it runs, and when nobody said. */
  readonly ended?: number;
  /** An LLM call that has answered is `done`, as is a note. */
  readonly state: ToolCall["state"];
  /** What it waited for before it ran, or waits for now. */
  readonly waitsFor?: "approval" | "client" | "worker";
}

/** The turns of these items, in order. `running` is the one that runs: `state.turn`. */
export function turnRows(items: readonly Item[], running: string | null): TurnRows[] {
  const byTurn = new Map<string, Item[]>();
  for (const item of items) {
    if (item.turn === undefined) continue;
    const ofTurn = byTurn.get(item.turn);
    if (ofTurn) ofTurn.push(item);
    else byTurn.set(item.turn, [item]);
  }
  return Array.from(byTurn, ([id, ofTurn]) => turn(id, ofTurn, running === id));
}

function turn(id: string, items: readonly Item[], isRunning: boolean): TurnRows {
  const end = items.find((item): item is End => item.type === "end" && item.agentExecutionId === undefined);
  const started = items[0]?.timestamp ?? 0;
  const rows: TurnRow[] = [];
  new Agents(items).rows(undefined, isRunning, 0, started, rows);
  return present<TurnRows>({
    id,
    sequenceNumber: items[0]?.sequenceNumber ?? 0,
    said: items.find((item) => item.type === "user_message")?.content,
    started,
    ended: end?.timestamp ?? (isRunning ? undefined : items.at(-1)?.timestamp),
    end,
    rows,
  });
}

/** The items of each agent execution; `undefined` is the turn's own. */
class Agents {
  readonly #items = new Map<string | undefined, Item[]>();

  constructor(items: readonly Item[]) {
    for (const item of items) {
      const own = this.#items.get(item.agentExecutionId);
      if (own) own.push(item);
      else this.#items.set(item.agentExecutionId, [item]);
    }
  }

  /** Adds the rows of an agent execution, and those of its sub-agents under the calls that started them. */
  rows(agent: string | undefined, isRunning: boolean, depth: number, started: number, rows: TurnRow[]): void {
    const items = this.#items.get(agent) ?? [];
    // Each one is taken once, so that this ends whatever the events say.
    this.#items.delete(agent);
    const calls = new LlmCalls(agent, depth, started);
    for (const item of items) {
      const llmCall = calls.endedWith(item);
      if (llmCall) rows.push(llmCall);
      if (item.type === "note") rows.push(note(item, depth));
      if (item.type !== "tool_call") continue;
      const row = tool(item, depth);
      calls.freeFrom = Math.max(calls.freeFrom, row.ended ?? item.timestamp);
      rows.push(row);
      if (!item.subAgent) continue;
      const runs = isRunning && item.subAgent.state === "running";
      this.rows(item.subAgent.agentExecutionId, runs, depth + 1, item.timestamp, rows);
    }
    const hasAnswered = items.at(-1)?.type === "assistant_message";
    const isWaiting = items.some((item) => item.type === "tool_call" && item.state === "running");
    if (isRunning && !hasAnswered && !isWaiting) rows.push(calls.open());
  }
}

/** The LLM calls of an agent execution. One begins when the agent has nothing else to wait for. */
class LlmCalls {
  freeFrom: number;
  readonly #agent: string | undefined;
  readonly #depth: number;
  #stepSeen: number | undefined;
  #nextStep = 0;

  constructor(agent: string | undefined, depth: number, started: number) {
    this.#agent = agent;
    this.#depth = depth;
    this.freeFrom = started;
  }

  /** The LLM call that this item shows the end of. */
  endedWith(item: Item): TurnRow | undefined {
    if (item.type === "end") return this.#failedWith(item);
    const step = item.type === "note" ? stepOfSummary(item) : item.step;
    if (step === undefined || step === this.#stepSeen) return undefined;
    this.#stepSeen = step;
    this.#nextStep = step + 1;
    // The hooks before a turn have a step of their own, which asks no model.
    if (item.type === "tool_call" && item.hook !== undefined) return undefined;
    const row: TurnRow = { ...this.open(), step, item: item.id, ended: item.timestamp, state: "done" };
    this.freeFrom = item.timestamp;
    return row;
  }

  /** The LLM call that an agent execution failed with: the codes of its errors say that a model was called. */
  #failedWith(end: End): TurnRow | undefined {
    const hasFailed = end.outcome === "error" && (end.code ?? "").startsWith("llm_");
    if (!hasFailed || end.timestamp <= this.freeFrom) return undefined;
    return { ...this.open(), item: end.id, ended: end.timestamp, state: "failed" };
  }

  /** The next LLM call, which has not ended. */
  open(): TurnRow {
    return present<TurnRow>({
      kind: "llm_call",
      depth: this.#depth,
      name: "",
      agent: undefined,
      step: this.#nextStep,
      agentExecutionId: this.#agent,
      executionId: undefined,
      item: undefined,
      started: this.freeFrom,
      ranFrom: this.freeFrom,
      ended: undefined,
      state: "running",
      waitsFor: undefined,
    });
  }
}

/** A summary of older messages is a step of its own. */
function stepOfSummary({ event, data }: Note): number | undefined {
  const hasSummary = event === "context_compacted" && data["summary"] !== undefined && data["summary"] !== "";
  const step = data["step"];
  return hasSummary && typeof step === "number" && Number.isSafeInteger(step) && step >= 0 ? step : undefined;
}

function note(item: Note, depth: number): TurnRow {
  const at = { started: item.timestamp, ranFrom: item.timestamp, ended: item.timestamp };
  return { kind: "note", depth, name: item.event, ...agentOf(item), item: item.id, ...at, state: "done" };
}

function tool(call: ToolCall, depth: number): TurnRow {
  const { timestamp: started, resultTimestamp: ended, durationMs, approval, clientTool } = call;
  let ranFrom: number | undefined = started;
  if (ended !== undefined && durationMs !== undefined) ranFrom = Math.max(ended - durationMs, started);
  else if (approval?.state === "pending" || clientTool) ranFrom = undefined;
  const hasWaited = ranFrom === undefined || ranFrom > started;
  const waitsFor = approval ? "approval" : clientTool ? "client" : "worker";
  return present<TurnRow>({
    kind: "tool",
    depth,
    name: call.toolName,
    agent: call.subAgent?.agent,
    step: call.step,
    agentExecutionId: call.agentExecutionId,
    executionId: call.executionId,
    item: call.id,
    started,
    ranFrom,
    ended,
    state: call.state,
    waitsFor: hasWaited ? waitsFor : undefined,
  });
}

function agentOf({ agentExecutionId }: ItemBase) {
  return agentExecutionId === undefined ? {} : { agentExecutionId };
}
