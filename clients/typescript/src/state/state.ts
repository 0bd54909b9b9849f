/**
 * What a client knows of a conversation. It is the same in every client of Everturn, and is described with the shared
 * transcripts (`clients/transcripts/README.md` in the repository).
 */

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** An object of JSON. */
export type JsonObject = { [name: string]: Json };

/** A conversation at one moment. It is never changed: what happens next makes a new one, which shares what is the same. */
export interface State {
  /** The `id` of the last event: what to come back with. `"0"` before the first. Keep it as the text that it is. */
  readonly cursor: string;
  /** `waiting`: a turn runs, and at least one of its calls waits for a person or for a client tool. */
  readonly status: "idle" | "running" | "waiting";
  /** The message id of the turn that runs. */
  readonly turn: string | null;
  /** Why the gateway said not to come back: `conversation_deleted`, `token_expired`, or a reason that is newer. */
  readonly ended: string | null;
  /** What a person is shown, in order. An item that has not changed is the same object as before; so is the array. */
  readonly items: readonly Item[];
  /** What models are writing now. */
  readonly texts: readonly OpenText[];
  /** The calls of models that wait for their provider, the newest news last. Absent when none waits. */
  readonly waits?: readonly ModelWait[];
  /** The latest reports of running tools, the newest last. Absent when no tool has reported. */
  readonly progress?: readonly ToolProgress[];
}

/** The state before anything is known. */
export const EMPTY_STATE: State = { cursor: "0", status: "idle", turn: null, ended: null, items: [], texts: [] };

/** A text that a model is writing. It is not stored: the event that follows has the whole text. */
export interface OpenText {
  readonly agentExecutionId: string;
  /** The LLM call of the agent execution, from 0. */
  readonly step: number;
  /**
   * A `text` becomes the `content` of a thought or of the answer, a `reasoning` the `reasoning` of a thought. `call_` with a
   * number is a tool call: `writtenCall` reads it.
   */
  readonly part: string;
  /** The try that wrote the text. */
  readonly generation: number;
  readonly text: string;
  /** The model has finished the text, and its event follows. */
  readonly ended: boolean;
  /** The message whose turn it is. */
  readonly messageId: string;
  /** Of a sub-agent's text: the `callId` of the call that started the sub-agent. */
  readonly parentToolCallId?: string;
}

/** A call of a model that the provider has refused, and that is made again later. */
export interface ModelWait {
  readonly agentExecutionId: string;
  /** The LLM call of the agent execution, from 0. */
  readonly step: number;
  /** The code of the refusal: `llm_overloaded`, `llm_rate_limited` or `llm_unavailable`. */
  readonly code: string;
  /** The refusal in a sentence. */
  readonly message: string;
  /** The number of the next try. */
  readonly attempt: number;
  /** Milliseconds from the arrival of the news to the next try. */
  readonly retryAfterMs: number;
  /** The message whose turn it is. */
  readonly messageId: string;
}

/** A report of a running tool: its progress, or a line of its log. */
export interface ToolProgress {
  readonly executionId: string;
  readonly agentExecutionId: string;
  readonly toolName: string;
  /** The amount of work that is done, in the tool's own unit. */
  readonly progress?: number;
  /** The whole amount of work, in the same unit. */
  readonly total?: number;
  /** The tool's words; empty without words. */
  readonly message: string;
  /** The level of a line of the tool's log, like `info`. Progress has no level. */
  readonly level?: string;
  /** The message of the turn. */
  readonly messageId: string;
}

/** What all items have. */
export interface ItemBase {
  /** Unique in the conversation. */
  readonly id: string;
  /** The place of its event. */
  readonly sequenceNumber: number;
  /** Milliseconds since 1970; 0 when it is not known. */
  readonly timestamp: number;
  /** The message id of its turn. */
  readonly turn?: string;
  /** The LLM call that it belongs to, from 0. Calls of one step run in parallel. */
  readonly step?: number;
  /** Of a sub-agent's item: its agent execution. */
  readonly agentExecutionId?: string;
  /** Of a sub-agent's item: the `callId` of the call that started the sub-agent, under which it belongs. */
  readonly parentToolCallId?: string;
}

/** What the user said. */
export interface UserMessage extends ItemBase {
  readonly type: "user_message";
  readonly content: string;
  /** `blob_id`, `media_type`, `file_name` and `bytes` of each file. */
  readonly attachments?: Json;
  /** The message whose failed turn the user has retried. A retry has no text. */
  readonly retryOf?: string;
}

/** What the model said to the user before it asked for tools, and its reasoning. At least one of the two is not blank. */
export interface Thought extends ItemBase {
  readonly type: "thought";
  /** Empty when the model only reasoned. */
  readonly content: string;
  readonly reasoning?: string;
  /** The sources that the text cites. */
  readonly citations?: readonly Citation[];
}

/** A source that a text cites. At least the address or the title is present. */
export interface Citation {
  /** The address of the source, with `http` or `https`. */
  readonly url?: string;
  readonly title?: string;
  /** The cited passage. */
  readonly text?: string;
}

/** A tool call, and what became of it. */
export interface ToolCall extends ItemBase {
  readonly type: "tool_call";
  readonly toolName: string;
  /** The title for people, like `Search the web for cats`; absent: show the tool's name. It changes with an edited input. */
  readonly title?: string;
  /** What the tool runs with: a person may have edited it. */
  readonly toolInput: Json;
  /** The tool execution. Calls of the first releases have none. */
  readonly executionId?: string;
  /** The model's id of the call. */
  readonly callId?: string;
  /** The hook that called the tool, like `before_turn`; absent when a model asked for it. */
  readonly hook?: string;
  /**
   * `unknown`: the tool was cut off, and may or may not have had its effect (`toolOutput` says so), until a person settles
   * the outcome; or the turn ended, and nobody said how the call did (then there is no `toolOutput`).
   */
  readonly state: "running" | "done" | "failed" | "unknown";
  readonly toolOutput?: Json;
  readonly isError?: boolean;
  readonly durationMs?: number;
  readonly resultSequenceNumber?: number;
  readonly resultTimestamp?: number;
  readonly approval?: Approval;
  /** The call is run by a client. */
  readonly clientTool?: ClientToolRequest;
  /** The sub-agent that the call started. */
  readonly subAgent?: SubAgent;
}

/** The approval that a call needs, or needed. */
export interface Approval {
  /** `pending`, then the decision: `approved`, `denied`, `declined`, `expired`, `cancelled`, or a word that is newer. */
  readonly state: string;
  /** To be sent back with the answer: binds it to this tool and this input. */
  readonly inputHash?: string;
  readonly expiresAt?: string;
  /** The input as the store keeps it, character for character. Show people this text: `toolInput` may have rounded numbers. */
  readonly inputText?: string;
  /** `other`: another person than the one who asked must approve. */
  readonly approvalBy?: string;
  /** It was approved with another input than the model's. */
  readonly edited?: boolean;
  /** This tool never asks again in this conversation. */
  readonly remember?: boolean;
  readonly reason?: string;
  readonly resolvedBy?: string;
  /** The question of a tool that runs. Absent when a person is to allow the call. */
  readonly question?: Question;
  /** The person's answer to a question with a `schema`. */
  readonly answer?: JsonObject;
}

/** A question of a running tool to a person. A call may ask several questions, one after another. */
export interface Question {
  /** The words of the tool's server. Show them as plain text. */
  readonly message: string;
  /** The form: the JSON Schema of an object with flat properties. Absent for a question with a `url`. */
  readonly schema?: JsonObject;
  /** The address that the person is to open. Absent for a form. */
  readonly url?: string;
}

/** A call that a client is to run. */
export interface ClientToolRequest {
  readonly expiresAt?: string;
}

/** An agent that a call gave a task to. Its items have the same `agentExecutionId`. */
export interface SubAgent {
  readonly agentExecutionId: string;
  readonly agent: string;
  readonly task: string;
  /** 1: under the turn's own agent. */
  readonly depth?: number;
  /** `running`, then how it ended. */
  readonly state: "running" | "complete" | "error" | "cancelled";
}

/** How a tool ended whose call is not known, because the items begin after it. */
export interface ToolResult extends ItemBase {
  readonly type: "tool_result";
  readonly toolName: string;
  readonly toolOutput: Json;
  readonly isError: boolean;
  /** The tool was cut off, and may or may not have had its effect. */
  readonly outcomeUnknown?: true;
  readonly executionId?: string;
  readonly callId?: string;
  readonly durationMs?: number;
}

/** What the agent answered. */
export interface AssistantMessage extends ItemBase {
  readonly type: "assistant_message";
  readonly content: string;
  /** The text so far of a cancelled turn. */
  readonly partial?: true;
  /** `stop`, `length`, `cancelled`, `invalid_output`, `step_limit`, or a word that is newer. */
  readonly finish?: string;
  /** The sources that the text cites. */
  readonly citations?: readonly Citation[];
}

/** A plan that the agent made. It stays in its place while its steps go on. */
export interface WorkPlan extends ItemBase {
  readonly type: "work_plan";
  readonly planId?: string;
  readonly title: string;
  readonly steps: readonly PlanStep[];
}

/** A step of a work plan. It has nothing to do with an LLM call. */
export interface PlanStep {
  readonly stepNumber: number;
  readonly description: string;
  /** `pending`, `running`, `completed`, `failed`, or a word that is newer. */
  readonly status: string;
}

/** Something worth a quiet line: a fallback to another model, a compaction, a skill. */
export interface Note extends ItemBase {
  readonly type: "note";
  /** The type of the event. */
  readonly event: string;
  /** The event's own fields, as on the wire (docs/api/events.md). */
  readonly data: JsonObject;
}

/** How a turn ended, or the part of a sub-agent. */
export interface End extends ItemBase {
  readonly type: "end";
  readonly outcome: "complete" | "error" | "cancelled";
  /** Of an error: its stable code, which has a page in docs/errors. */
  readonly code?: string;
  /** Of an error: a sentence for people. */
  readonly message?: string;
  /** Of a cancel. */
  readonly reason?: string;
  readonly finish?: string;
  /** LLM calls. */
  readonly steps?: number;
  /** Tokens, with those of all sub-agents, as on the wire. */
  readonly usage?: Json;
  /** A decimal number as a text. */
  readonly costUsd?: string;
  /** The value of the answer, when the agent has an output schema. */
  readonly output?: Json;
}

/** One thing that a person is shown. */
export type Item = UserMessage | Thought | ToolCall | ToolResult | AssistantMessage | WorkPlan | Note | End;
