//! Turns on Temporal: one workflow id per conversation, signal-with-start.

use std::{error::Error, time::Duration};

use async_trait::async_trait;
use everturn_proto::{
    ids,
    turn::{Cancel, Submit, TurnInput},
    words::{TASK_QUEUE, execution_status, search_attribute},
};
use everturn_store::Conversation;
use everturn_workflows::AgentExecution;
use temporalio_client::{
    Client, RpcOptions, WorkflowHandle, WorkflowSignalOptions, WorkflowStartOptions, WorkflowTerminateOptions,
    errors::WorkflowInteractionError,
};
use temporalio_common::{
    HasWorkflowDefinition,
    search_attributes::{SearchAttributeKey, SearchAttributes},
};

use super::{CancelOutcome, OnBusy, TurnError, TurnStarter};

const CONVERSATION_ID: SearchAttributeKey<String> = SearchAttributeKey::keyword(search_attribute::CONVERSATION_ID);
const AGENT_NAME: SearchAttributeKey<String> = SearchAttributeKey::keyword(search_attribute::AGENT_NAME);
const TENANT_ID: SearchAttributeKey<String> = SearchAttributeKey::keyword(search_attribute::TENANT_ID);
const TURN_STATUS: SearchAttributeKey<String> = SearchAttributeKey::keyword(search_attribute::TURN_STATUS);

/// A workflow task that takes longer belongs to a dead worker (invariant 3).
const TASK_TIMEOUT: Duration = Duration::from_secs(5);

/// How the engine is called.
#[derive(Debug, Clone)]
pub struct TemporalTurnsOptions {
    /// Queue that the workers listen on. Default `everturn`.
    pub task_queue: String,
    /// How long a call may take with its retries. Default 5 s: the client waits for it.
    pub timeout: Duration,
}

impl Default for TemporalTurnsOptions {
    fn default() -> Self {
        Self { task_queue: TASK_QUEUE.to_owned(), timeout: Duration::from_secs(5) }
    }
}

/// Starts and signals turns on Temporal.
#[derive(Clone)]
pub struct TemporalTurns {
    client: Client,
    options: TemporalTurnsOptions,
}

impl TemporalTurns {
    /// With a connected client.
    pub fn new(client: Client, options: TemporalTurnsOptions) -> Self {
        Self { client, options }
    }

    /// Awaits a call for as long as one may take.
    async fn within<T, E>(&self, call: impl Future<Output = Result<T, E>>) -> Result<Result<T, E>, TurnError> {
        tokio::time::timeout(self.options.timeout, call).await.map_err(unavailable)
    }

    fn rpc_options(&self) -> RpcOptions {
        RpcOptions::builder().timeout(self.options.timeout).build()
    }

    fn start_options(&self, conversation: &Conversation) -> WorkflowStartOptions {
        let attributes = SearchAttributes::new([
            CONVERSATION_ID.value_set(conversation.id.clone()),
            AGENT_NAME.value_set(conversation.agent.clone()),
            TENANT_ID.value_set(conversation.tenant_id.clone()),
            TURN_STATUS.value_set(execution_status::RUNNING.to_owned()),
        ]);
        WorkflowStartOptions::new(self.options.task_queue.clone(), ids::workflow_id(&conversation.id))
            .task_timeout(TASK_TIMEOUT)
            .search_attributes(attributes)
            .static_summary(format!("Agent `{}`", conversation.agent))
            .rpc_options(self.rpc_options())
            .build()
    }
}

#[async_trait]
impl TurnStarter for TemporalTurns {
    async fn submit(&self, conversation: &Conversation, message_id: &str, on_busy: OnBusy) -> Result<(), TurnError> {
        let input = TurnInput {
            conversation_id: conversation.id.clone(),
            tenant_id: conversation.tenant_id.clone(),
            agent: conversation.agent.clone(),
            ..TurnInput::default()
        };
        // No content: the row in `messages` holds it, and history stays small (invariant 4).
        let submit =
            Submit { message_id: message_id.to_owned(), on_busy: on_busy.as_str().to_owned(), ..Submit::default() };
        let call = self.client.signal_with_start_workflow(
            AgentExecution::run,
            input.into(),
            AgentExecution::submit,
            submit.into(),
            self.start_options(conversation),
        );
        self.within(call).await?.map(drop).map_err(unavailable)
    }

    async fn cancel(&self, conversation_id: &str, message_id: &str) -> Result<CancelOutcome, TurnError> {
        let cancel = Cancel { message_id: message_id.to_owned(), reason: "cancelled by the user".to_owned() };
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = WorkflowSignalOptions::builder().rpc_options(self.rpc_options()).build();
        match self.within(handle.signal(AgentExecution::cancel, cancel.into(), options)).await? {
            Ok(()) => Ok(CancelOutcome::Requested),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(CancelOutcome::NotRunning),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn terminate(&self, conversation_id: &str, reason: &str) -> Result<(), TurnError> {
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = WorkflowTerminateOptions::builder().reason(reason).rpc_options(self.rpc_options()).build();
        match self.within(handle.terminate(options)).await? {
            Ok(()) | Err(WorkflowInteractionError::NotFound(_)) => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }
}

/// A handle typed by the workflow's definition: the workflow's state is not `Send`, and a handle typed by it would
/// not be either.
fn handle<W: HasWorkflowDefinition>(
    client: &Client,
    _definition: W,
    conversation_id: &str,
) -> WorkflowHandle<Client, W> {
    client.get_workflow_handle(ids::workflow_id(conversation_id))
}

fn unavailable(error: impl Error + Send + Sync + 'static) -> TurnError {
    TurnError(Box::new(error))
}
