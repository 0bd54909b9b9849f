/** The types of the HTTP API, by the names that docs/openapi.json gives them. */

import type { components } from "./generated/openapi.js";

type Schemas = components["schemas"];

/** An agent that conversations may have. */
export type Agent = Schemas["Agent"];
/** The agents that conversations may have. */
export type AgentList = Schemas["AgentList"];
/** A conversation, as lists show it. */
export type Conversation = Schemas["Conversation"];
/** A conversation with its activity, and with the usage and cost of its LLM calls. */
export type ConversationDetail = Schemas["ConversationDetail"];
/** A page of conversations. */
export type ConversationPage = Schemas["ConversationPage"];
/** A conversation of a list, with what goes on in it. */
export type ListedConversation = Schemas["ListedConversation"];
/** A conversation to be created. */
export type NewConversation = Schemas["NewConversation"];
/** A message to be sent. */
export type NewMessage = Schemas["NewMessage"];
/** The gateway has stored a message. */
export type AcceptedMessage = Schemas["AcceptedMessage"];
/** An event, as pages have it. */
export type Event = Schemas["Event"];
/** A page of events. */
export type EventPage = Schemas["EventPage"];
/** A page of the API's timeline. */
export type Timeline = Schemas["Timeline"];
/** An item of the API's timeline. */
export type TimelineItem = Schemas["TimelineItem"];
/** Whether a turn runs. */
export type ExecutionStatus = Schemas["ExecutionStatus"];
/** A page of turns and their sub-agents. */
export type AgentExecutions = Schemas["AgentExecutions"];
/** A turn, or a sub-agent's part of one. */
export type AgentExecution = Schemas["AgentExecution"];
/** An agent execution with its LLM calls, checkpoints and tool calls. */
export type AgentExecutionDetail = Schemas["AgentExecutionDetail"];
/** A stored point from which a turn can go on. */
export type Checkpoint = Schemas["Checkpoint"];
/** A tool call being carried out. */
export type ToolExecution = Schemas["ToolExecution"];
/** What the LLM call of one step took. */
export type StepUsage = Schemas["StepUsage"];
/** A page of the LLM calls of an agent execution. */
export type ModelCalls = Schemas["ModelCalls"];
/** An LLM call with a stored answer. */
export type ModelCall = Schemas["ModelCall"];
/** An LLM call with what the model was sent and answered. */
export type ModelCallContent = Schemas["ModelCallContent"];
/** The tries of an LLM call that gave no answer. */
export type CallTries = Schemas["CallTries"];
/** A step whose LLM call has no answer. */
export type UnansweredCall = Schemas["UnansweredCall"];
/** What a model was sent. */
export type SentToModel = Schemas["SentToModel"];
/** What a model answered. */
export type AnsweredByModel = Schemas["AnsweredByModel"];
/** A call that waits for a person. */
export type PendingApproval = Schemas["PendingApproval"];
/** A call of any conversation that waits for a person. */
export type InboxApproval = Schemas["InboxApproval"];
/** A page of calls that wait for people. */
export type ApprovalInbox = Schemas["ApprovalInbox"];
/** An input that a person proposes for a call, which another person must approve. */
export type ProposedInput = Schemas["ProposedInput"];
/** A question of a running tool to a person. */
export type Question = Schemas["Question"];
/** The answer to an approval was taken. */
export type AnsweredApproval = Schemas["AnsweredApproval"];
/** A call that waits for a client. */
export type WaitingCall = Schemas["WaitingCall"];
/** A call of a client tool was claimed. */
export type ClaimedClientTool = Schemas["ClaimedClientTool"];
/** The result of a client tool was stored. */
export type StoredResult = Schemas["StoredResult"];
/** The outcome of a tool call, as a person has settled it. */
export type SettledToolOutcome = Schemas["SettledToolOutcome"];
/** A part of a long result. */
export type ToolResultSlice = Schemas["ToolResultSlice"];
/** What came of a cancel. */
export type Cancelled = Schemas["Cancelled"];
/** What came of a resume. */
export type Resumed = Schemas["Resumed"];
/** A file that was uploaded. */
export type Blob = Schemas["Blob"];
/** Who the caller is. */
export type Session = Schemas["Session"];
/** An error response (RFC 9457). */
export type Problem = Schemas["Problem"];
/** The stable codes of errors. A gateway that is newer may have more. */
export type Code = Schemas["Code"];
