/** A client of Everturn for browsers and Node: see README.md. */

export { Everturn } from "./everturn.js";
export {
  type Answer,
  type ApprovalRequest,
  type ApproveOptions,
  Conversation,
  type ConversationOptions,
  type SendOptions,
} from "./conversation.js";
export { ApiError, type ClientCode, EverturnError, TurnError } from "./errors.js";
export { DEFAULT_LIMITS, type EverturnOptions, type Limits } from "./options.js";
export type { InboxOptions } from "./live/inbox.js";
export type { FollowListOptions, ListOptions, WaitingFor } from "./live/list.js";
export type { Locks } from "./live/locks.js";
export type { PendingMessage } from "./live/outbox.js";
export type { Update } from "./live/session.js";
export { memoryStorage, type TextStorage } from "./live/storage.js";
export type { ClientTool, ClientTools, ToolContext, ToolFunction } from "./live/tools.js";
export { eventData } from "./state/events.js";
export { ConversationList } from "./state/list.js";
export { type Frame, reduce, Reducer, type ReducerOptions } from "./state/reducer.js";
export { answerOfTurn, endOfTurn, itemsOfAgent, itemsOfTurn, pendingApprovals } from "./state/select.js";
export * from "./state/state.js";
export { timeline } from "./state/timeline.js";
export { type WrittenCall, writtenCall } from "./state/written.js";
export { type TurnRow, type TurnRows, turnRows } from "./state/waterfall.js";
export type { Connection } from "./wire/stream.js";
export type * as api from "./api.js";
