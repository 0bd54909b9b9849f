//! The words of the messages as their types. On the wire they are text (see [`crate::words`]); nothing else compares
//! that text.

use crate::{
    event::Event,
    turn::{
        AgentTool, LlmCompleteState, LoadedTurn, PlannedCall, ResolveApproval, RunToolResult,
        SaveApproval, SaveEnd, SaveResult, ThinkResult, ToolCall, TurnOutput,
    },
    words::{
        AgentExecutionStatus, ApprovalState, Decision, Effect, EventType, FinishReason, ToolKind,
        ToolStatus,
    },
};

/// Gives a message's text field as its type.
macro_rules! typed {
    ($($message:ident . $field:ident: $word:ident, $doc:literal;)+) => {
        $(impl $message {
            #[doc = $doc]
            pub fn $field(&self) -> $word {
                $word::from(self.$field.as_str())
            }
        })+
    };
}

typed! {
    Event.event_type: EventType, "What the event says.";
    ThinkResult.finish: FinishReason, "Why the call of the model ended.";
    LlmCompleteState.finish: FinishReason, "Why the call of the model ended.";
    PlannedCall.kind: ToolKind, "Who runs the tool.";
    AgentTool.kind: ToolKind, "Who runs the tool.";
    ToolCall.kind: ToolKind, "Who runs the tool.";
    ToolCall.effect: Effect, "What a retry of the tool may do.";
    RunToolResult.status: ToolStatus, "How the tool execution ended.";
    ResolveApproval.decision: Decision, "What the person decided.";
    SaveApproval.decision: ApprovalState, "How the approval was answered.";
    SaveEnd.status: AgentExecutionStatus, "How the agent execution ends.";
    SaveResult.status: AgentExecutionStatus, "How the agent execution stands, as the store has it.";
    LoadedTurn.status: AgentExecutionStatus, "How the agent execution stands, as the store has it.";
    TurnOutput.status: AgentExecutionStatus, "How the turn ended.";
}

impl ToolCall {
    /// False when the model asked for a tool that its agent does not have. Such a call has no effect.
    pub fn names_a_tool(&self) -> bool {
        !self.effect.is_empty()
    }
}
