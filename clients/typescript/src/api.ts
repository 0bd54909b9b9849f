/** The types of the HTTP API, by the names that docs/openapi.json gives them. */

import type { components } from "./generated/openapi.js";

type Schemas = components["schemas"];

export type Conversation = Schemas["Conversation"];
export type ConversationPage = Schemas["ConversationPage"];
export type NewConversation = Schemas["NewConversation"];
export type NewMessage = Schemas["NewMessage"];
export type AcceptedMessage = Schemas["AcceptedMessage"];
export type OnBusy = Schemas["OnBusy"];
export type Event = Schemas["Event"];
export type EventPage = Schemas["EventPage"];
export type Timeline = Schemas["Timeline"];
export type TimelineItem = Schemas["TimelineItem"];
export type ExecutionStatus = Schemas["ExecutionStatus"];
export type AgentExecution = Schemas["AgentExecution"];
export type AgentExecutions = Schemas["AgentExecutions"];
export type PendingApproval = Schemas["PendingApproval"];
export type ApprovalAnswer = Schemas["ApprovalAnswer"];
export type AnsweredApproval = Schemas["AnsweredApproval"];
export type WaitingCall = Schemas["WaitingCall"];
export type StoredResult = Schemas["StoredResult"];
export type ToolResultSlice = Schemas["ToolResultSlice"];
export type Cancelled = Schemas["Cancelled"];
export type Resumed = Schemas["Resumed"];
export type Blob = Schemas["Blob"];
export type Session = Schemas["Session"];
export type Problem = Schemas["Problem"];
/** The stable codes of errors. A gateway that is newer may have more. */
export type Code = Schemas["Code"];
