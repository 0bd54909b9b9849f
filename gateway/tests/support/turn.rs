//! A turn that a test drives as a worker does, with the saves of the real store.

use everturn_proto::{
    ids,
    turn::{
        AgentDefinition, LlmCompleteState, SaveEnd, SaveRequest, SaveThought, ToolCall,
        save_request::Batch,
    },
    words::{AgentExecutionStatus, FinishReason},
};
use everturn_store::{
    BeginTurn, DayBudget, EventWriter, OnUnknownAgent, StepClaims, StepKey, TurnStart, Turns,
};

use super::store::{TestStore, finish};

/// A turn that runs.
pub struct Turn {
    store: TestStore,
    conversation_id: String,
    message_id: String,
    agent_execution_id: String,
}

impl Turn {
    /// Takes a waiting message of a conversation, and begins its turn.
    pub fn begin(store: &TestStore, conversation_id: &str, message_id: &str) -> Self {
        let owner = finish(everturn_store::TurnInputs::owner_of(
            &store.database,
            conversation_id,
        ));
        let tenant_id = owner.unwrap().unwrap().tenant_id;
        let agent_execution_id = ids::root_agent_execution_id(conversation_id, message_id);
        let mut begin = BeginTurn {
            conversation_id: conversation_id.to_owned(),
            tenant_id,
            message_id: message_id.to_owned(),
            content: None,
            agent_execution_id: agent_execution_id.clone(),
            agent: AgentDefinition {
                max_steps: 5,
                model: Some("m1".to_owned()),
                ..AgentDefinition::only_a_name("default".to_owned())
            },
            on_unknown_agent: OnUnknownAgent::Refuse,
            epoch: Some(0),
            tenant_budget: DayBudget::default(),
        };
        while let TurnStart::AskAgain { epoch } =
            finish(store.database.begin_turn(begin.clone())).unwrap()
        {
            begin.epoch = Some(epoch);
        }
        Self {
            store: store.clone(),
            conversation_id: conversation_id.to_owned(),
            message_id: message_id.to_owned(),
            agent_execution_id,
        }
    }

    fn step(&self, step: u32) -> StepKey {
        StepKey {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step,
            epoch: None,
        }
    }

    fn reply(&self, step: u32, text: &str, tool_calls: Vec<ToolCall>) {
        let finish_reason = if tool_calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        let state = LlmCompleteState {
            text: text.to_owned(),
            finish: finish_reason.into(),
            tool_calls,
            input_tokens: 100,
            output_tokens: 10,
            generation: 1000,
            ..LlmCompleteState::default()
        };
        finish(self.store.database.complete_step(&self.step(step), state)).unwrap();
    }

    /// The model asks for a tool that a person must approve.
    pub fn asks_for_approval(&self) {
        let execution_id = ids::tool_execution_id(&self.message_id, &self.agent_execution_id, 0, 0);
        let call = ToolCall {
            call_id: ids::call_id(&execution_id),
            execution_id,
            tool_name: "refund".to_owned(),
            tool_input: Some(everturn_proto::Json::parse("{}").unwrap()),
            timeout_ms: 3_600_000,
            effect: "once".to_owned(),
            input_hash: "h".to_owned(),
            approval_timeout_s: Some(3600),
            ..ToolCall::default()
        };
        self.reply(0, "I must ask.", vec![call]);
        self.save(0, Batch::Thought(SaveThought {}));
    }

    /// Ends the turn with an answer.
    pub fn complete(&self, text: &str) {
        self.reply(0, text, Vec::new());
        self.end(0, AgentExecutionStatus::Completed);
    }

    /// Ends the turn otherwise. A failure has the code `step_limit`.
    pub fn end(&self, step: u32, status: AgentExecutionStatus) {
        let end = SaveEnd {
            status: status.into(),
            code: Some("step_limit".to_owned()),
            message: Some("no steps are left".to_owned()),
            hooks: None,
        };
        self.save(step, Batch::End(end));
    }

    fn save(&self, step: u32, batch: Batch) {
        let request = SaveRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step,
            epoch: None,
            batch: Some(batch),
        };
        finish(self.store.database.save(&request)).unwrap();
    }
}
