//! Methods that return the words in the messages as their types. On the wire words are text (see [`crate::words`]), and
//! nothing outside this file compares that text.

use crate::{
    event::Event,
    ids,
    turn::{
        AgentDefinition, AgentTool, ApprovalPolicy, CallRule, LlmCompleteState, LoadedTurn,
        PlannedCall, ResolveApproval, RunToolResult, SaveApproval, SaveEnd, SaveResult,
        ThinkResult, ToolCall, TurnOutput,
    },
    words::{
        AgentExecutionStatus, AnswersFrom, ApprovalBy, ApprovalState, Decision, Effect, EventType,
        FinishReason, OnCutReply, OnDefinitionChange, OnFullContext, ToolKind, ToolStatus,
    },
};

/// Makes a method that returns a message's text field as its type.
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
    PlannedCall.answers_from: AnswersFrom, "Which answers to its approval are taken.";
    CallRule.by: ApprovalBy, "Who may approve the call.";
    CallRule.answers_from: AnswersFrom, "Which answers to its approval are taken.";
    AgentTool.kind: ToolKind, "Who runs the tool.";
    ToolCall.kind: ToolKind, "Who runs the tool.";
    RunToolResult.status: ToolStatus, "How the tool execution ended.";
    ResolveApproval.decision: Decision, "What the person decided.";
    SaveApproval.decision: ApprovalState, "How the approval was answered.";
    SaveEnd.status: AgentExecutionStatus, "How the agent execution ends.";
    SaveResult.status: AgentExecutionStatus, "How the agent execution stands, as the store has it.";
    LoadedTurn.status: AgentExecutionStatus, "How the agent execution stands, as the store has it.";
    TurnOutput.status: AgentExecutionStatus, "How the turn ended.";
}

impl AgentDefinition {
    /// Returns the hash by which the definition is stored, and by which a turn is pinned to it: that of its JSON.
    ///
    /// # Errors
    ///
    /// It has no JSON form.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        Ok(ids::definition_hash(&serde_json::to_string(self)?))
    }

    /// Returns what becomes of an answer that the provider cut.
    pub fn policy_on_cut_reply(&self) -> OnCutReply {
        let word = self.on_cut_reply.as_deref();
        word.map_or(OnCutReply::End, OnCutReply::from)
    }

    /// Returns what becomes of older messages when the context window nears its end.
    pub fn policy_on_full_context(&self) -> OnFullContext {
        let word = self.on_full_context.as_deref();
        word.map_or(OnFullContext::Summarize, OnFullContext::from)
    }
}

impl ApprovalPolicy {
    /// Returns who may approve.
    pub fn approvers(&self) -> ApprovalBy {
        self.by
            .as_deref()
            .map_or(ApprovalBy::Anyone, ApprovalBy::from)
    }
}

impl AgentTool {
    /// Returns what becomes of a call when the tool has changed since the conversation used it before.
    pub fn policy_on_definition_change(&self) -> OnDefinitionChange {
        let word = self.on_definition_change.as_deref();
        word.map_or(OnDefinitionChange::Run, OnDefinitionChange::from)
    }
}

impl LoadedTurn {
    /// The number of the first step that the turn may not have. The step in which an agent's hooks are planned is none of its
    /// `max_steps`.
    pub fn step_limit(&self) -> u32 {
        self.max_steps
            .saturating_add(u32::from(self.has_before_turn))
    }
}

impl LlmCompleteState {
    /// Number of calls of a model that the checkpoint stands for: one, or none where the step runs hooks. Each call has a
    /// generation, and such a step has none.
    pub fn calls(&self) -> u32 {
        u32::from(self.generation > 0)
    }

    /// True when the step runs the hooks of its agent, and the model asked for none of its calls.
    pub fn is_of_hooks(&self) -> bool {
        self.tool_calls.first().is_some_and(ToolCall::is_of_hook)
    }
}

impl ToolCall {
    /// True when the model did not ask for the call: it is a hook of its agent.
    pub fn is_of_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// Returns who may answer its approval, and what is known of its definition.
    pub fn rule(&self) -> CallRule {
        self.rule.clone().unwrap_or_default()
    }

    /// Returns what a retry of the tool may do; `None` when the model asked for a tool that its agent does not have.
    pub fn effect(&self) -> Option<Effect> {
        let effect = Some(self.effect.as_str()).filter(|effect| !effect.is_empty());
        effect.map(Effect::from)
    }

    /// False when the model asked for a tool that its agent does not have.
    pub fn names_a_tool(&self) -> bool {
        self.effect().is_some()
    }

    /// True when the tool may run again although an earlier attempt may have taken effect.
    pub fn may_run_again(&self) -> bool {
        self.effect().is_some_and(|effect| effect.may_run_again())
    }
}
