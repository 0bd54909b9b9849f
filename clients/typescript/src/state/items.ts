/** What an event makes a person see, before anything else happened to it. */

import { count, extended, flag, id, isObject, present, text, value } from "./fields.js";
import type {
  Approval,
  AssistantMessage,
  Citation,
  End,
  Item,
  ItemBase,
  JsonObject,
  Note,
  PlanStep,
  Question,
  SubAgent,
  Thought,
  ToolCall,
  ToolResult,
  UserMessage,
  WorkPlan,
} from "./state.js";

/** Fields of every event, which a note does not repeat. */
const ENVELOPE = new Set(["type", "conversation_id", "message_id", "sequence_number", "created_at"]);

const BLANK = /^\p{White_Space}*$/u;

/**
 * Makes the item of an event that stands for itself, of its base, which becomes the item. Undefined for an event that
 * changes other items, or is not shown.
 */
export function itemOf(data: JsonObject, base: ItemBase): Item | undefined {
  switch (data["type"]) {
    case "user_message":
      return userMessage(data, base);
    case "thought":
      return thought(data, base);
    case "act":
      return toolCall(data, base);
    case "assistant_message":
      return assistantMessage(data, base);
    case "context_compacted":
    case "model_fallback":
    case "outcome_probed":
    case "outcome_settled":
    case "pattern_match":
    case "skill_matched":
    case "skill_execution_start":
    case "skill_execution_complete":
      return note(data, base);
    case "complete":
    case "error":
    case "cancelled":
      return end(data, base);
    default:
      return undefined;
  }
}

function userMessage(data: JsonObject, base: ItemBase): UserMessage {
  return extended<UserMessage, ItemBase>(base, {
    id: id(data, "message_id") ?? base.id,
    type: "user_message",
    content: text(data, "content"),
    attachments: value(data, "attachments"),
    retryOf: id(data, "retry_of"),
  });
}

function thought(data: JsonObject, base: ItemBase): Thought | undefined {
  const [content, reasoning] = [text(data, "thought"), text(data, "reasoning")];
  const hasReasoning = !BLANK.test(reasoning);
  if (BLANK.test(content) && !hasReasoning) return undefined;
  return extended<Thought, ItemBase>(base, {
    type: "thought",
    content,
    reasoning: hasReasoning ? reasoning : undefined,
    citations: citations(data),
  });
}

function toolCall(data: JsonObject, base: ItemBase): ToolCall {
  return extended<ToolCall, ItemBase>(base, {
    type: "tool_call",
    toolName: text(data, "tool_name"),
    title: id(data, "title"),
    toolInput: data["tool_input"] ?? null,
    executionId: id(data, "execution_id"),
    callId: id(data, "call_id"),
    hook: id(data, "hook"),
    state: "running",
  });
}

/** An answer's `message_id` is its own. Events of the first releases have none, and so carry that of their turn. */
function assistantMessage(data: JsonObject, base: ItemBase): AssistantMessage {
  const own = id(data, "message_id");
  return extended<AssistantMessage, ItemBase>(base, {
    id: own === undefined || own === base.turn ? base.id : own,
    type: "assistant_message",
    content: text(data, "content"),
    partial: flag(data, "partial") || undefined,
    finish: id(data, "finish"),
    citations: citations(data),
  });
}

/** The sources that a text cites. An entry that is no object is left out. */
function citations(data: JsonObject): Citation[] | undefined {
  const list = data["citations"];
  if (!Array.isArray(list)) return undefined;
  const found = list.flatMap((entry) => (typeof entry === "object" && entry !== null && !Array.isArray(entry) ? [entry] : []));
  return found.map((entry) => present<Citation>({ url: id(entry, "url"), title: id(entry, "title"), text: id(entry, "text") }));
}

function note(data: JsonObject, base: ItemBase): Note {
  const own = Object.entries(data).filter(([name]) => !ENVELOPE.has(name));
  const fields = { type: "note", event: text(data, "type"), data: Object.fromEntries(own) } as const;
  return extended<Note, ItemBase>(base, fields);
}

function end(data: JsonObject, base: ItemBase): End {
  return extended<End, ItemBase>(base, {
    type: "end",
    outcome: data["type"] as End["outcome"],
    code: id(data, "code"),
    message: id(data, "message"),
    reason: id(data, "reason"),
    finish: id(data, "finish"),
    steps: count(data, "steps"),
    usage: value(data, "usage"),
    costUsd: id(data, "cost_usd"),
    output: value(data, "output"),
  });
}

/** What an `observe` adds to its call. */
export function resultOf(data: JsonObject, base: ItemBase): Partial<ToolCall> {
  const isError = flag(data, "is_error") ?? false;
  return present<Partial<ToolCall>>({
    state: isUnknown(data) ? "unknown" : isError ? "failed" : "done",
    toolOutput: output(data),
    isError,
    durationMs: count(data, "duration_ms"),
    resultSequenceNumber: base.sequenceNumber,
    resultTimestamp: base.timestamp,
  });
}

/** The item of an `observe` whose call is not known. */
export function unpairedResult(data: JsonObject, base: ItemBase): ToolResult {
  return extended<ToolResult, ItemBase>(base, {
    type: "tool_result",
    toolName: text(data, "tool_name"),
    toolOutput: output(data),
    isError: flag(data, "is_error") ?? false,
    outcomeUnknown: isUnknown(data) || undefined,
    executionId: id(data, "execution_id"),
    callId: id(data, "call_id"),
    durationMs: count(data, "duration_ms"),
  });
}

/** The tool was cut off: it may or may not have had its effect. */
function isUnknown(data: JsonObject): boolean {
  return flag(data, "outcome_unknown") ?? false;
}

/** The events of the first design named it `observation`. */
function output(data: JsonObject) {
  return ("result" in data ? data["result"] : data["observation"]) ?? null;
}

/** The approval that an `approval_requested` asks for. */
export function requestedApproval(data: JsonObject): Approval {
  return present<Approval>({
    state: "pending",
    inputHash: id(data, "input_hash"),
    expiresAt: id(data, "expires_at"),
    inputText: id(data, "input_text"),
    approvalBy: id(data, "approval_by"),
    question: question(data["question"]),
  });
}

/** The question of a tool that runs. */
function question(asked: unknown): Question | undefined {
  if (!isObject(asked)) return undefined;
  return present<Question>({ message: text(asked, "message"), schema: object(asked, "schema"), url: id(asked, "url") });
}

function object(data: JsonObject, name: string): JsonObject | undefined {
  const value = data[name];
  return isObject(value) ? value : undefined;
}

/** What an `approval_resolved` changes of its call: with another input than the model's, there is another title, or none. */
export function editedCall(call: ToolCall, data: JsonObject): ToolCall {
  if (data["edited"] !== true || !("tool_input" in data)) return call;
  return present<ToolCall>({ ...call, title: id(data, "title"), toolInput: data["tool_input"] ?? null });
}

/** What an `approval_resolved` changes of an approval. */
export function resolvedApproval(data: JsonObject): Partial<Approval> {
  return present<Partial<Approval>>({
    state: text(data, "decision"),
    edited: flag(data, "edited"),
    remember: flag(data, "remember"),
    reason: id(data, "reason"),
    resolvedBy: id(data, "resolved_by"),
    inputText: id(data, "input_text"),
    answer: object(data, "answer"),
  });
}

/** The sub-agent that a `sub_agent_start` begins. */
export function startedSubAgent(data: JsonObject): SubAgent {
  return present<SubAgent>({
    agentExecutionId: text(data, "agent_execution_id"),
    agent: text(data, "agent"),
    task: text(data, "task"),
    depth: count(data, "depth"),
    state: "running",
  });
}

/** The plan of a `work_plan`. */
export function workPlan(data: JsonObject, base: ItemBase): WorkPlan {
  const steps = Array.isArray(data["steps"]) ? data["steps"] : [];
  return extended<WorkPlan, ItemBase>(base, {
    type: "work_plan",
    planId: id(data, "plan_id"),
    title: text(data, "title"),
    steps: steps.flatMap((step) => planStep(step)),
  });
}

function planStep(step: unknown): PlanStep[] {
  if (typeof step !== "object" || step === null || Array.isArray(step)) return [];
  const data = step as JsonObject;
  const stepNumber = count(data, "step_number");
  if (stepNumber === undefined) return [];
  return [{ stepNumber, description: text(data, "description"), status: text(data, "status") }];
}
