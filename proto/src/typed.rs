//! Methods that read the words in the messages as typed values. On the wire words are text (see [`crate::words`]), and
//! no code outside this file compares the text.

use crate::{
    Json, TitleTemplate,
    event::Event,
    ids,
    turn::{
        AgentDefinition, AgentTool, ApprovalPolicy, CallRule, LlmCompleteState, LoadedTurn,
        PlannedCall, ResolveApproval, RunToolResult, SaveApproval, SaveEnd, SaveQuestion,
        SaveResult, SavedApproval, SendMessageInput, ThinkResult, ToolCall, TurnInput, TurnOutput,
    },
    words::{
        AgentExecutionStatus, AnswersFrom, ApprovalBy, ApprovalState, DEFAULT_TENANT, Decision,
        Effect, EventType, FinishReason, OnCutReply, OnDefinitionChange, OnFullContext, ToolKind,
        ToolStatus,
    },
};

/// Makes a method that returns a message's text field as a typed word.
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
    PlannedCall.answers_from: AnswersFrom, "The source of accepted answers to the approval.";
    CallRule.by: ApprovalBy, "Who may approve the call.";
    CallRule.answers_from: AnswersFrom, "The source of accepted answers to the approval.";
    AgentTool.kind: ToolKind, "Who runs the tool.";
    ToolCall.kind: ToolKind, "Who runs the tool.";
    RunToolResult.status: ToolStatus, "How the tool execution ended.";
    ResolveApproval.decision: Decision, "What the person decided.";
    SaveApproval.decision: ApprovalState, "How the approval was answered.";
    SavedApproval.decision: ApprovalState, "How the approval was answered.";
    SaveEnd.status: AgentExecutionStatus, "How the agent execution ends.";
    SaveResult.status: AgentExecutionStatus, "The status of the agent execution in the store.";
    LoadedTurn.status: AgentExecutionStatus, "The status of the agent execution in the store.";
    TurnOutput.status: AgentExecutionStatus, "How the turn ended.";
}

impl SaveQuestion {
    /// Returns the number of the question among the questions of the call, from 1; 0 without a question.
    pub fn number(&self) -> u32 {
        self.question.as_ref().map_or(0, |question| question.number)
    }
}

impl TurnInput {
    /// Returns the input's tenant, or the default tenant when the input has no tenant.
    pub fn tenant(&self) -> &str {
        or_default(self.tenant_id.as_deref())
    }
}

impl SendMessageInput {
    /// Returns the input's tenant, or the default tenant when the input has no tenant.
    pub fn tenant(&self) -> &str {
        or_default(self.tenant_id.as_deref())
    }
}

fn or_default(tenant_id: Option<&str>) -> &str {
    tenant_id
        .filter(|id| !id.is_empty())
        .unwrap_or(DEFAULT_TENANT)
}

impl AgentDefinition {
    /// Returns the hash of the definition's JSON. The store keeps the definition under the hash, and a turn is pinned
    /// to the hash.
    ///
    /// # Errors
    ///
    /// The definition has no JSON form.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        Ok(ids::definition_hash(&serde_json::to_string(self)?))
    }

    /// Returns the agent's policy for an answer that the provider cut.
    pub fn policy_on_cut_reply(&self) -> OnCutReply {
        let word = self.on_cut_reply.as_deref();
        word.map_or(OnCutReply::End, OnCutReply::from)
    }

    /// Returns the agent's policy for older messages when the context window is nearly full.
    pub fn policy_on_full_context(&self) -> OnFullContext {
        let word = self.on_full_context.as_deref();
        word.map_or(OnFullContext::Summarize, OnFullContext::from)
    }
}

impl ApprovalPolicy {
    /// Returns the people who may approve.
    pub fn approvers(&self) -> ApprovalBy {
        self.by
            .as_deref()
            .map_or(ApprovalBy::Anyone, ApprovalBy::from)
    }
}

impl AgentTool {
    /// Returns the policy for a call of a tool with a changed definition since the conversation's last use of the tool.
    pub fn policy_on_definition_change(&self) -> OnDefinitionChange {
        let word = self.on_definition_change.as_deref();
        word.map_or(OnDefinitionChange::Run, OnDefinitionChange::from)
    }
}

impl LoadedTurn {
    /// Returns the number of the first step beyond the turn's limit. The step that plans an agent's hooks does not
    /// count toward `max_steps`.
    pub fn step_limit(&self) -> u32 {
        self.max_steps
            .saturating_add(u32::from(self.has_before_turn))
    }
}

impl LlmCompleteState {
    /// Returns the number of model calls of the checkpoint's step: one, or zero for a step that runs hooks. Each model
    /// call has a generation, and a step of hooks has no generation.
    pub fn calls(&self) -> u32 {
        u32::from(self.generation > 0)
    }

    /// True when the step runs the hooks of its agent, and the model asked for none of the step's calls.
    pub fn is_of_hooks(&self) -> bool {
        self.tool_calls.first().is_some_and(ToolCall::is_of_hook)
    }
}

impl ToolCall {
    /// True when the call is a hook of its agent, and not a request of the model.
    pub fn is_of_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// Returns the title of the call for people, with the values of the present input; `None` when people see the name of
    /// the tool.
    pub fn title(&self) -> Option<String> {
        if self.title_template.is_empty() {
            return None;
        }
        let template = TitleTemplate::parse(&self.title_template).ok()?;
        template.render(self.tool_input.as_ref().unwrap_or(&Json::default()))
    }

    /// Returns the rule for the call: who may answer the approval, and the facts about the tool's definition.
    pub fn rule(&self) -> CallRule {
        self.rule.clone().unwrap_or_default()
    }

    /// Returns the call's arguments as the store keeps them, for people who decide about the call.
    pub fn input_text(&self) -> String {
        let input = self.tool_input.as_ref();
        input.map_or("null", Json::as_str).to_owned()
    }

    /// Returns why no tool may get the call's arguments; `None` for usable arguments. The reason is for the model.
    pub fn unusable(&self) -> Option<&str> {
        let rule = self.rule.as_ref();
        let reason = rule.map(|rule| rule.unusable.as_str());
        reason.filter(|reason| !reason.is_empty())
    }

    /// Returns the tool's effect, which decides about retries; `None` for a tool outside the agent's tools.
    pub fn effect(&self) -> Option<Effect> {
        let effect = Some(self.effect.as_str()).filter(|effect| !effect.is_empty());
        effect.map(Effect::from)
    }

    /// False when the model asked for a tool outside its agent's tools.
    pub fn names_a_tool(&self) -> bool {
        self.effect().is_some()
    }

    /// True when the tool may run again after an attempt with an unknown outcome.
    pub fn may_run_again(&self) -> bool {
        self.effect().is_some_and(|effect| effect.may_run_again())
    }
}
