//! A conversation that a test drives as a worker would do it.

use everturn_proto::{
    Json, SealedStep,
    event::Event,
    ids,
    turn::{
        AgentDefinition, AgentTool, LlmCompleteState, SaveEnd, SaveObserve, SaveRequest, SaveSteer,
        SaveThought, ToolCall, WaitingHooks, save_request::Batch,
    },
    words::{
        AgentExecutionStatus, AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind, Effect,
        FinishReason, OnBusy, ToolKind, ToolStatus,
    },
};
use everturn_store::{
    Access, AuditActor, AuditTarget, BeginTurn, BegunTurn, Conversation, Conversations,
    EventReader, EventWriter, MessageQueue, ModelCalls, NewAuditEntry, NewMessage, OnUnknownAgent,
    PageLimit, QueuedMessage, Saved, StepClaims, StepKey, StoreError, ToolClaims, ToolEnd, ToolKey,
    TurnInputs, TurnStart, Turns,
};

/// Every trait that the turn of a test needs.
pub trait TurnStore:
    EventReader
    + Conversations
    + MessageQueue
    + Turns
    + TurnInputs
    + StepClaims
    + ModelCalls
    + ToolClaims
    + EventWriter
{
}

impl<S> TurnStore for S where
    S: EventReader
        + Conversations
        + MessageQueue
        + Turns
        + TurnInputs
        + StepClaims
        + ModelCalls
        + ToolClaims
        + EventWriter
{
}

/// Returns an access that sees everything that these tests make.
pub fn tenant() -> Access {
    Access::tenant("default")
}

/// Returns the audit entry of an operator's action.
pub fn operator_entry(
    tenant_id: Option<&str>,
    action: AuditAction,
    kind: AuditTargetKind,
    id: &str,
) -> NewAuditEntry {
    NewAuditEntry {
        tenant_id: tenant_id.map(Into::into),
        actor: AuditActor {
            kind: AuditActorKind::Operator,
            id: None,
        },
        action,
        target: AuditTarget {
            kind,
            id: id.into(),
        },
        outcome: AuditOutcome::Done,
        address: None,
        request_id: None,
        details: serde_json::Map::new(),
        keep_days: 1,
    }
}

/// More than any test stores.
pub const EVERYTHING: PageLimit = PageLimit {
    rows: 10_000,
    bytes: u32::MAX,
};

pub fn agent() -> AgentDefinition {
    let (name, model) = ("default".into(), Some("m1".into()));
    AgentDefinition {
        name,
        model,
        max_steps: 5,
        ..AgentDefinition::default()
    }
}

/// Returns the agent of these tests, which may delegate to itself.
pub fn delegating_agent() -> AgentDefinition {
    let tool = AgentTool {
        name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        delegates: vec!["default".into()],
        ..AgentTool::default()
    };
    AgentDefinition {
        tools: vec![tool],
        max_depth: 1,
        max_sub_agents: 1,
        ..agent()
    }
}

/// One turn of one conversation.
#[derive(Clone)]
pub struct Turn<S> {
    pub store: S,
    pub conversation: String,
    pub message: String,
    pub execution: String,
    /// The epoch of the run that asks; `None`: no run asks.
    pub epoch: Option<u32>,
}

impl<S: TurnStore> Turn<S> {
    /// Makes a turn that has not begun.
    pub fn new(store: S, conversation: &str, message: &str) -> Self {
        let execution = ids::root_agent_execution_id(conversation, message);
        Self {
            store,
            conversation: conversation.into(),
            message: message.into(),
            execution,
            epoch: None,
        }
    }

    /// Returns the turn as a run of this epoch has it.
    pub fn under(self, epoch: Option<u32>) -> Self {
        Self { epoch, ..self }
    }

    /// Begins a turn.
    pub async fn begun(store: S, conversation: &str, message: &str) -> Self {
        let turn = Self::new(store, conversation, message);
        turn.begin_as_run(&format!("say {message}")).await.unwrap();
        turn
    }

    pub fn begin(&self, content: &str) -> BeginTurn {
        BeginTurn {
            conversation_id: self.conversation.clone(),
            tenant_id: "default".into(),
            message_id: self.message.clone(),
            content: (!content.is_empty()).then(|| content.into()),
            agent_execution_id: self.execution.clone(),
            agent: agent(),
            on_unknown_agent: OnUnknownAgent::Refuse,
            epoch: Some(0),
            tenant_budget: everturn_store::DayBudget::default(),
        }
    }

    /// Begins the turn as a run does: when a turn runs already, it asks again with the epoch that it was given.
    pub async fn begin_as_run(&self, content: &str) -> Result<BegunTurn, StoreError> {
        let mut begin = self.begin(content);
        loop {
            match self.store.begin_turn(begin.clone()).await? {
                TurnStart::Begun(begun) => return Ok(*begun),
                TurnStart::AskAgain { epoch } => begin.epoch = Some(epoch),
            }
        }
    }

    pub async fn begin_again(&self) -> BegunTurn {
        self.begin_as_run("").await.unwrap()
    }

    pub fn step(&self, step: u32) -> StepKey {
        StepKey {
            conversation_id: self.conversation.clone(),
            message_id: self.message.clone(),
            agent_execution_id: self.execution.clone(),
            step,
            epoch: self.epoch,
        }
    }

    /// Returns a step of this turn as the store names a sealed one.
    pub fn sealed(&self, step: u32) -> SealedStep {
        SealedStep {
            agent_execution_id: self.execution.clone(),
            step,
        }
    }

    pub fn tool(&self, step: u32, index: usize) -> ToolKey {
        ToolKey {
            conversation_id: self.conversation.clone(),
            message_id: self.message.clone(),
            agent_execution_id: self.execution.clone(),
            step,
            execution_id: self.execution_id(step, index),
            epoch: self.epoch,
        }
    }

    pub fn execution_id(&self, step: u32, index: usize) -> String {
        ids::tool_execution_id(&self.message, &self.execution, step, index)
    }

    pub fn call(&self, step: u32, index: usize, effect: Effect) -> ToolCall {
        let execution_id = self.execution_id(step, index);
        ToolCall {
            call_id: ids::call_id(&execution_id),
            execution_id,
            tool_name: "search".into(),
            tool_input: Some(json(r#"{"q":"x"}"#)),
            timeout_ms: 1000,
            signatures: vec!["opaque".into()],
            effect: effect.into(),
            input_hash: "shown".into(),
            ..ToolCall::default()
        }
    }

    /// Returns the call that starts a sub-agent of a [`delegating_agent`].
    pub fn delegate_call(&self, step: u32, index: usize) -> ToolCall {
        ToolCall {
            tool_name: "delegate".into(),
            kind: ToolKind::Delegate.into(),
            tool_input: Some(json(r#"{"agent": "default", "task": "look"}"#)),
            ..self.call(step, index, Effect::Idempotent)
        }
    }

    /// Stores a reply of the model. `effects` are the effects of the tools that it asks for.
    pub async fn complete(&self, step: u32, text: &str, effects: &[Effect]) {
        let calls = effects
            .iter()
            .enumerate()
            .map(|(index, effect)| self.call(step, index, effect.clone()))
            .collect();
        self.store
            .complete_step(&self.step(step), state(text, calls))
            .await
            .unwrap();
    }

    /// Stores a reply in which the model asks for tools, and saves its thought.
    pub async fn asks(&self, step: u32, text: &str, effects: &[Effect]) -> Saved {
        self.complete(step, text, effects).await;
        self.thought(step).await
    }

    /// Runs a tool to its end and saves its observe.
    pub async fn runs(&self, step: u32, index: usize) -> Saved {
        self.store
            .claim_tool(&self.tool(step, index), "a")
            .await
            .unwrap();
        self.store
            .finish_tool(&self.tool(step, index), tool_end("\"found\""))
            .await
            .unwrap();
        self.observe(step, index, "").await
    }

    pub async fn thought(&self, step: u32) -> Saved {
        self.save(step, Batch::Thought(SaveThought {})).await
    }

    pub async fn observe(&self, step: u32, index: usize, failure: &str) -> Saved {
        let observe = SaveObserve {
            execution_id: self.execution_id(step, index),
            failure: (!failure.is_empty()).then(|| failure.into()),
        };
        self.save(step, Batch::Observe(observe)).await
    }

    pub async fn end(&self, step: u32, status: AgentExecutionStatus) -> Saved {
        let end = SaveEnd {
            status: status.into(),
            code: Some("a_code".into()),
            message: Some("why".into()),
            hooks: None,
        };
        self.save(step, Batch::End(end)).await
    }

    /// Completes the turn. The agent has hooks after the turn, which run on the workers of this task queue.
    pub async fn end_with_hooks(&self, step: u32, tool_queue: Option<&str>) -> Saved {
        let end = SaveEnd {
            status: AgentExecutionStatus::Completed.into(),
            hooks: Some(WaitingHooks {
                tool_queue: tool_queue.map(Into::into),
            }),
            ..SaveEnd::default()
        };
        self.save(step, Batch::End(end)).await
    }

    /// Queues a message with this text, and takes the message into the turn.
    pub async fn steer(&self, message: &str, content: &str) -> Saved {
        let message_of_user = NewMessage {
            content: content.into(),
            ..new_message(&self.conversation, message, None)
        };
        let access = tenant();
        let queued = self.store.queue_message(&access, message_of_user);
        queued.await.unwrap();
        self.take(message).await
    }

    /// Takes a queued message into the turn.
    pub async fn take(&self, message: &str) -> Saved {
        let message_id = message.into();
        self.save(0, Batch::Steer(SaveSteer { message_id })).await
    }

    pub async fn save(&self, step: u32, batch: Batch) -> Saved {
        self.store.save(&self.request(step, batch)).await.unwrap()
    }

    pub fn request(&self, step: u32, batch: Batch) -> SaveRequest {
        SaveRequest {
            conversation_id: self.conversation.clone(),
            message_id: self.message.clone(),
            agent_execution_id: self.execution.clone(),
            step,
            epoch: self.epoch,
            batch: Some(batch),
        }
    }

    pub async fn queue(&self, message: &str) -> QueuedMessage {
        self.store
            .queue_message(&tenant(), new_message(&self.conversation, message, None))
            .await
            .unwrap()
    }

    /// Returns the events of the conversation, if there is one.
    pub async fn events(&self) -> Vec<Event> {
        let tenant = tenant();
        let found = self.store.conversation(&tenant, &self.conversation);
        let Some(conversation) = found.await.unwrap() else {
            return Vec::new();
        };
        let page = self
            .store
            .events(&tenant, &conversation.log(), 0, EVERYTHING)
            .await
            .unwrap();
        assert!(!page.has_more);
        for (place, event) in page.events.iter().enumerate() {
            assert_eq!(
                event.sequence_number as usize,
                place + 1,
                "no gap, no duplicate"
            );
        }
        page.events
    }

    pub async fn types(&self) -> Vec<String> {
        self.events()
            .await
            .into_iter()
            .map(|event| event.event_type)
            .collect()
    }

    /// Returns the data of each event of a type.
    pub async fn all_data(&self, event_type: &str) -> Vec<serde_json::Value> {
        let events = self.events().await;
        let of_type = events.iter().filter(|event| event.event_type == event_type);
        of_type.map(data).collect()
    }

    /// Returns the data of the only event of a type.
    pub async fn data(&self, event_type: &str) -> serde_json::Value {
        let mut found = self.all_data(event_type).await;
        assert_eq!(found.len(), 1, "one {event_type}");
        found.remove(0)
    }

    pub async fn conversation(&self) -> Conversation {
        let found = self.store.conversation(&tenant(), &self.conversation).await;
        found.unwrap().unwrap()
    }
}

pub fn data(event: &Event) -> serde_json::Value {
    event.event_data.as_ref().unwrap().to_value()
}

pub fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// The generation of a reply to whichever call was claimed last: the store refuses replies of older calls.
pub const NEWEST_CALL: u32 = 1_000;

pub fn state(text: &str, tool_calls: Vec<ToolCall>) -> LlmCompleteState {
    LlmCompleteState {
        text: text.into(),
        finish: if tool_calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        }
        .into(),
        tool_calls,
        input_tokens: 100,
        output_tokens: 10,
        generation: NEWEST_CALL,
        ..LlmCompleteState::default()
    }
}

pub fn tool_end(result: &str) -> ToolEnd {
    ToolEnd {
        status: ToolStatus::Completed,
        result: json(result),
        full_result: None,
        is_error: false,
        duration_ms: 12,
        events: Vec::new(),
    }
}

pub fn new_message(conversation: &str, message: &str, client: Option<&str>) -> NewMessage {
    NewMessage {
        conversation_id: conversation.into(),
        message_id: message.into(),
        client_message_id: client.map(Into::into),
        content: format!("say {}", client.unwrap_or(message)),
        sent_by: None,
        model: None,
        names_model: false,
        attachments: Vec::new(),
        max_attached_bytes: 1_000_000,
        on_busy: OnBusy::Queue,
        max_queued: 100,
        max_turns: None,
        max_turns_of_owner: None,
    }
}

/// The three effect classes.
pub const EFFECTS: [Effect; 3] = [Effect::Read, Effect::Idempotent, Effect::Once];
