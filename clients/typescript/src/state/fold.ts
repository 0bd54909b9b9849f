/** Makes items of events, in their order: rules 3 to 5 of the shared transcripts. */

import { count, id, present, text } from "./fields.js";
import {
  editedCall,
  itemOf,
  requestedApproval,
  resolvedApproval,
  resultOf,
  startedSubAgent,
  unpairedResult,
  workPlan,
} from "./items.js";
import type { End, Item, ItemBase, JsonObject, ToolCall, WorkPlan } from "./state.js";

/** A sub-agent that is known. */
interface KnownAgent {
  readonly callId: string | undefined;
  /** Where its call is in the items. */
  readonly callAt: number | undefined;
}

/** The items of the events so far. Items are replaced and never changed. */
export class Fold {
  readonly items: Item[] = [];
  /** The message id of the turn that runs. */
  turn: string | null = null;
  readonly #agents = new Map<string, KnownAgent>();
  /** Where the last call of each tool execution is, and the last of each of the model's ids. */
  readonly #callsByExecution = new Map<string, number>();
  readonly #callsById = new Map<string, number>();
  /** Where the calls are that still run, in order. */
  readonly #running = new Set<number>();
  readonly #plans = new Map<string, number>();

  /** True when a call waits for a person or a client. */
  get isWaiting(): boolean {
    for (const at of this.#running) {
      const call = this.items[at] as ToolCall;
      if (call.approval?.state === "pending" || call.clientTool) return true;
    }
    return false;
  }

  /** The `callId` of the call that started a sub-agent; undefined for an agent that is no known sub-agent. */
  parentOf(agentExecutionId: string): string | undefined {
    return this.#agents.get(agentExecutionId)?.callId;
  }

  /** Takes the next event. */
  apply(data: JsonObject, sequenceNumber: number): void {
    const agent = id(data, "agent_execution_id");
    const isEnd = data["type"] === "complete" || data["type"] === "error" || data["type"] === "cancelled";
    this.#noteTurn(data, isEnd);
    const base = this.#base(data, sequenceNumber, agent);
    const item = itemOf(data, base);
    if (data["type"] === "outcome_settled") this.#settle(data);
    if (item) this.#push(item);
    else this.#change(data, base);
    if (isEnd) this.#end(data["type"] as End["outcome"], agent);
  }

  #noteTurn(data: JsonObject, isEnd: boolean): void {
    const isAnswer = data["type"] === "assistant_message"; // its message_id is its own
    const isLate = data["type"] === "outcome_settled"; // it may come after the end of its turn
    if (this.turn === null && !isAnswer && !isLate && !isEnd) this.turn = id(data, "message_id") ?? null;
  }

  #base(data: JsonObject, sequenceNumber: number, agent: string | undefined): ItemBase {
    const timestamp = Date.parse(text(data, "created_at"));
    const known = agent === undefined ? undefined : this.#agents.get(agent);
    const ofTurn = data["type"] === "assistant_message" ? undefined : id(data, "message_id");
    const turn = this.turn ?? ofTurn;
    const step = hasStep(data) ? count(data, "step") : undefined;
    return present<ItemBase>({
      id: `${text(data, "type")}-${sequenceNumber}`,
      sequenceNumber,
      timestamp: Number.isNaN(timestamp) ? 0 : timestamp,
      turn,
      step,
      agentExecutionId: known && agent,
      parentToolCallId: known?.callId,
    });
  }

  #push(item: Item): void {
    const at = this.items.push(item) - 1;
    if (item.type !== "tool_call") return;
    this.#running.add(at);
    if (item.executionId !== undefined) this.#callsByExecution.set(item.executionId, at);
    if (item.callId !== undefined) this.#callsById.set(item.callId, at);
  }

  /** Takes an event that changes other items. */
  #change(data: JsonObject, base: ItemBase): void {
    switch (data["type"]) {
      case "observe":
        return this.#observe(data, base);
      case "approval_requested":
        return this.#changeCall(this.#callOf(data), () => ({ approval: requestedApproval(data) }));
      case "approval_resolved":
        return this.#resolve(this.#callOf(data), data);
      case "client_tool_requested": {
        const expiresAt = id(data, "expires_at");
        return this.#changeCall(this.#callOf(data), () => ({
          clientTool: expiresAt === undefined ? {} : { expiresAt },
        }));
      }
      case "sub_agent_start":
        return this.#startAgent(data);
      case "work_plan":
        return this.#plan(data, base);
      case "step_start":
        return this.#setPlanStep(data, "running");
      case "step_end":
        return this.#setPlanStep(data, id(data, "status"));
    }
  }

  #callOf(data: JsonObject): number | undefined {
    const execution = id(data, "execution_id");
    return execution === undefined ? undefined : this.#callsByExecution.get(execution);
  }

  #observe(data: JsonObject, base: ItemBase): void {
    const at = id(data, "execution_id") === undefined ? this.#firstOfName(text(data, "tool_name")) : this.#callOf(data);
    const call = at === undefined ? undefined : (this.items[at] as ToolCall);
    if (at === undefined || call?.resultSequenceNumber !== undefined) return this.#push(unpairedResult(data, base));
    this.#changeCall(at, () => resultOf(data, base));
    this.#running.delete(at);
  }

  /** The first call that runs and has no execution id, as in events of the first releases. */
  #firstOfName(toolName: string): number | undefined {
    for (const at of this.#running) {
      const call = this.items[at] as ToolCall;
      if (call.executionId === undefined && call.toolName === toolName) return at;
    }
    return undefined;
  }

  #changeCall(at: number | undefined, change: (call: ToolCall) => Partial<ToolCall>): void {
    if (at === undefined) return;
    const call = this.items[at] as ToolCall;
    this.items[at] = { ...call, ...change(call) };
  }

  #resolve(at: number | undefined, data: JsonObject): void {
    if (at === undefined) return;
    const call = this.items[at] as ToolCall;
    const approval = { ...(call.approval ?? { state: "" }), ...resolvedApproval(data) };
    this.items[at] = { ...editedCall(call, data), approval };
  }

  /** A person says how a call with an unknown outcome did. */
  #settle(data: JsonObject): void {
    const state = data["outcome"] === "happened" ? "done" : "failed";
    this.#changeCall(this.#callOf(data), (call) => (isUnknown(call) ? { state } : {}));
  }

  #startAgent(data: JsonObject): void {
    const agent = id(data, "agent_execution_id");
    if (agent === undefined) return;
    const callId = id(data, "call_id");
    const byId = callId === undefined ? undefined : this.#callsById.get(callId);
    const callAt = id(data, "execution_id") === undefined ? byId : this.#callOf(data);
    this.#agents.set(agent, { callId, callAt });
    this.#changeCall(callAt, () => ({ subAgent: startedSubAgent(data) }));
  }

  #plan(data: JsonObject, base: ItemBase): void {
    const planId = id(data, "plan_id");
    const at = planId === undefined ? undefined : this.#plans.get(planId);
    const plan = workPlan(data, base);
    if (at !== undefined) {
      const { title, steps } = plan;
      this.items[at] = { ...(this.items[at] as WorkPlan), title, steps };
      return;
    }
    const added = this.items.push(plan) - 1;
    if (planId !== undefined) this.#plans.set(planId, added);
  }

  #setPlanStep(data: JsonObject, status: string | undefined): void {
    const at = this.#plans.get(text(data, "plan_id"));
    const number = count(data, "step_number");
    if (at === undefined || status === undefined) return;
    const plan = this.items[at] as WorkPlan;
    const steps = plan.steps.map((step) => (step.stepNumber === number ? { ...step, status } : step));
    this.items[at] = { ...plan, steps };
  }

  /** Ends a sub-agent, or the turn. Its calls that still run have no outcome. */
  #end(outcome: End["outcome"], agent: string | undefined): void {
    const known = agent === undefined ? undefined : this.#agents.get(agent);
    if (known) {
      this.#changeCall(known.callAt, (call) => (call.subAgent ? { subAgent: { ...call.subAgent, state: outcome } } : {}));
    } else {
      this.turn = null;
    }
    for (const at of [...this.#running]) {
      if (known && this.items[at]?.agentExecutionId !== agent) continue;
      this.#changeCall(at, () => ({ state: "unknown" }));
      this.#running.delete(at);
    }
  }
}

function isUnknown({ state, resultSequenceNumber }: ToolCall): boolean {
  return state === "unknown" && resultSequenceNumber !== undefined;
}

function hasStep(data: JsonObject): boolean {
  return data["type"] === "thought" || data["type"] === "act" || data["type"] === "assistant_message";
}
