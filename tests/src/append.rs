//! Turns that nobody runs: their batches are saved without a worker. For measurements of the store, and of readers that
//! come back.

use everturn_proto::{
    ConversationName, ids,
    turn::{AgentDefinition, SaveEnd, SaveRequest, SaveSteer, save_request::Batch},
    words::{AgentExecutionStatus, DEFAULT_TENANT, OnBusy},
};
use everturn_store::{Access, BeginTurn, NewMessage, OnUnknownAgent, Store, TurnStart};
use uuid::Uuid;

/// A turn that has begun in the store, and has no workflow.
pub struct Appender {
    store: Store,
    tenant_id: String,
    conversation_id: String,
    message_id: String,
    agent_execution_id: String,
    epoch: Option<u32>,
}

impl Appender {
    /// Begins a turn in a conversation, which is created when it is unknown. The conversation has one more event then.
    pub async fn begin(store: &Store, conversation_id: &str) -> Self {
        Self::begin_for(store, DEFAULT_TENANT, conversation_id).await
    }

    /// Begins a turn as [`Appender::begin`] does, in a conversation of this tenant.
    pub async fn begin_for(store: &Store, tenant_id: &str, name: &str) -> Self {
        let conversation_id = &ConversationName { tenant_id, name }.id();
        let message_id = Uuid::now_v7().to_string();
        let agent_execution_id = ids::root_agent_execution_id(conversation_id, &message_id);
        let mut begin = BeginTurn {
            conversation_id: conversation_id.to_owned(),
            tenant_id: tenant_id.to_owned(),
            message_id: message_id.clone(),
            content: Some("Begin.".to_owned()),
            agent_execution_id: agent_execution_id.clone(),
            agent: AgentDefinition {
                name: "default".to_owned(),
                ..AgentDefinition::default()
            },
            on_unknown_agent: OnUnknownAgent::Begin,
            epoch: Some(0),
            tenant_budget: everturn_store::DayBudget::default(),
        };
        let begun = loop {
            match store.turns.begin_turn(begin.clone()).await.unwrap() {
                TurnStart::Begun(begun) => break begun,
                TurnStart::AskAgain { epoch } => begin.epoch = Some(epoch),
            }
        };
        Self {
            store: store.clone(),
            tenant_id: tenant_id.to_owned(),
            conversation_id: conversation_id.to_owned(),
            message_id,
            agent_execution_id,
            epoch: Some(begun.epoch),
        }
    }

    /// Queues a message, and takes the message as [`Appender::take`] does.
    pub async fn append(&self, content: &str) -> u32 {
        let message_id = self.queue(content).await;
        self.take(message_id).await
    }

    /// Queues a message. Returns its id.
    pub async fn queue(&self, content: &str) -> String {
        let message_id = Uuid::now_v7().to_string();
        let new = NewMessage {
            conversation_id: self.conversation_id.clone(),
            message_id: message_id.clone(),
            client_message_id: None,
            content: content.to_owned(),
            sent_by: None,
            model: None,
            names_model: false,
            attachments: Vec::new(),
            max_attached_bytes: 0,
            on_busy: OnBusy::Steer,
            max_queued: u32::MAX,
            max_turns: None,
            max_turns_of_owner: None,
        };
        let access = Access::tenant(self.tenant_id.clone());
        let queued = self.store.messages.queue_message(&access, new);
        queued.await.unwrap();
        message_id
    }

    /// Saves a batch with one event: the queued message joins the turn. Returns the conversation's last sequence number.
    pub async fn take(&self, message_id: String) -> u32 {
        self.save(Batch::Steer(SaveSteer { message_id })).await
    }

    /// Ends the turn with one more event. A turn that does not end would be taken for a lost one by a gateway. Returns
    /// the conversation's last sequence number.
    pub async fn end(&self) -> u32 {
        self.save(Batch::End(SaveEnd {
            status: AgentExecutionStatus::Cancelled.into(),
            message: Some("It was ended by a test.".to_owned()),
            ..SaveEnd::default()
        }))
        .await
    }

    async fn save(&self, batch: Batch) -> u32 {
        let request = SaveRequest {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            agent_execution_id: self.agent_execution_id.clone(),
            step: 0,
            epoch: self.epoch,
            batch: Some(batch),
        };
        let saved = self.store.writer.save(&request).await.unwrap();
        saved.result.last_sequence
    }
}
