//! Implements the port with Temporal. A conversation has one workflow id. A message comes by signal-with-start, or by a
//! start that fails if a workflow already runs.

use std::{collections::HashSet, error::Error, time::Duration};

use async_trait::async_trait;
use everturn_proto::{
    ids,
    turn::{Cancel, ResolveApproval, ToolResultStored},
    words::{AgentExecutionStatus, ApprovalRefusal, TASK_QUEUE, search_attribute},
};
use everturn_store::{Conversation, DueHooks};
use everturn_workflows::{AgentExecution, TASK_TIMEOUT};
use temporalio_client::{
    Client, RpcOptions, WorkflowDescribeOptions, WorkflowExecuteUpdateOptions,
    WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHandle,
    WorkflowIdConflictPolicy, WorkflowSignalOptions, WorkflowStartOptions,
    WorkflowTerminateOptions,
    errors::{WorkflowInteractionError, WorkflowStartError, WorkflowUpdateError},
    tonic::{Code, Status},
};
use temporalio_common::{
    HasWorkflowDefinition, MemoValues, Priority,
    data_converters::{NoopDecodeHint, SerializationContextData},
    payload_visitor::decode_payloads,
    protos::temporal::api::failure::v1::Failure,
    search_attributes::{SearchAttributeKey, SearchAttributes},
};

use super::{
    inputs::{ring, start_input, turn_input},
    port::{
        ApprovalOutcome, HooksOutcome, RunningWorkflow, StartMessages, StartOutcome, TurnError,
        TurnStarter,
    },
    search_attributes::register_search_attributes,
};

const CONVERSATION_ID: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::CONVERSATION_ID);
const AGENT_NAME: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::AGENT_NAME);
const TENANT_ID: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::TENANT_ID);
const TURN_STATUS: SearchAttributeKey<String> =
    SearchAttributeKey::keyword(search_attribute::TURN_STATUS);

/// The memo with the first message of a workflow that was started without a signal.
const FIRST_MESSAGE: &str = "first_message_id";

/// Options for calls to the engine.
#[derive(Debug, Clone)]
pub struct TemporalTurnsOptions {
    /// The task queue of the workers. Default `everturn`.
    pub task_queue: String,
    /// The most time for a call with its retries. Default 5 s, because the client waits for the call.
    pub timeout: Duration,
}

impl Default for TemporalTurnsOptions {
    fn default() -> Self {
        Self {
            task_queue: TASK_QUEUE.to_owned(),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Starts and signals turns on Temporal.
#[derive(Clone)]
pub struct TemporalTurns {
    client: Client,
    options: TemporalTurnsOptions,
}

impl TemporalTurns {
    /// Makes the port from a connected client.
    pub fn new(client: Client, options: TemporalTurnsOptions) -> Self {
        Self { client, options }
    }

    /// Waits for a call to a workflow. Returns false when the workflow does not run.
    async fn reached(
        &self,
        call: impl Future<Output = Result<(), WorkflowInteractionError>>,
    ) -> Result<bool, TurnError> {
        match self.within(call).await? {
            Ok(()) => Ok(true),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Waits for a call, up to the timeout of the options.
    pub(super) async fn within<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, TurnError> {
        tokio::time::timeout(self.options.timeout, call)
            .await
            .map_err(unavailable)
    }

    /// Returns the connection to Temporal.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the namespace of all turns.
    pub(super) fn namespace(&self) -> String {
        self.client.options().namespace.clone()
    }

    /// Returns the task queue of the workflows.
    pub(super) fn task_queue(&self) -> String {
        self.options.task_queue.clone()
    }

    pub(super) fn rpc_options(&self) -> RpcOptions {
        RpcOptions::builder().timeout(self.options.timeout).build()
    }

    /// Makes the options of a signal that a run takes once. The engine drops a signal with a known request id before
    /// the signal enters the history. Therefore a client may repeat its request any number of times (invariant 4,
    /// linear history).
    fn signal_options(&self, request_id: String) -> WorkflowSignalOptions {
        WorkflowSignalOptions::builder()
            .request_id(request_id)
            .rpc_options(self.rpc_options())
            .build()
    }

    fn start_options(&self, conversation: &Conversation) -> WorkflowStartOptions {
        let attributes = SearchAttributes::new([
            CONVERSATION_ID.value_set(conversation.id.clone()),
            AGENT_NAME.value_set(conversation.agent.clone()),
            TENANT_ID.value_set(conversation.tenant_id.clone()),
            TURN_STATUS.value_set(AgentExecutionStatus::Running.into()),
        ]);
        let priority = priority_of(&conversation.tenant_id);
        WorkflowStartOptions::new(self.task_queue(), ids::workflow_id(&conversation.id))
            .task_timeout(TASK_TIMEOUT)
            .priority(priority)
            .search_attributes(attributes)
            .static_summary(format!("Agent `{}`", conversation.agent))
            .rpc_options(self.rpc_options())
            .build()
    }

    /// Returns true when the conversation's workflow was started for the message. A start repeated after a lost answer
    /// finds its own workflow by the memo, because the SDK does not let callers choose a start's request id.
    async fn started_for(
        &self,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool, TurnError> {
        let Some(described) = self.describe(conversation_id).await? else {
            return Ok(false);
        };
        let first: Option<String> = described.memo().get(FIRST_MESSAGE).map_err(unavailable)?;
        Ok(first.as_deref() == Some(message_id))
    }

    /// Returns the text of a failure. The text may be encrypted, because the SDK passes an update's failure on without
    /// decoding.
    async fn text_of(&self, mut failure: Failure) -> Result<String, TurnError> {
        let converter = &self.client.options().data_converter;
        let context = SerializationContextData::None;
        decode_payloads(&mut failure, converter.codec(), &context)
            .await
            .map_err(unavailable)?;
        let error = converter.to_error(&context, failure, NoopDecodeHint);
        Ok(error.map_err(unavailable)?.failure().message.clone())
    }

    /// Describes the latest workflow of a conversation; `None` without a workflow.
    pub(super) async fn describe(
        &self,
        conversation_id: &str,
    ) -> Result<Option<WorkflowExecutionDescription>, TurnError> {
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = WorkflowDescribeOptions::builder()
            .rpc_options(self.rpc_options())
            .build();
        match self.within(handle.describe(options)).await? {
            Ok(described) => Ok(Some(described)),
            Err(WorkflowInteractionError::NotFound(_)) => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }
}

#[async_trait]
impl TurnStarter for TemporalTurns {
    async fn submit(&self, conversation: &Conversation, message_id: &str) -> Result<(), TurnError> {
        let call = self.client.signal_with_start_workflow(
            AgentExecution::run,
            turn_input(conversation).into(),
            AgentExecution::submit,
            ring(message_id).into(),
            self.start_options(conversation),
        );
        self.within(call).await?.map(drop).map_err(unavailable)
    }

    async fn signal(&self, conversation_id: &str, message_id: &str) -> Result<bool, TurnError> {
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = self.signal_options(format!("submit/{message_id}"));
        let call = handle.signal(AgentExecution::submit, ring(message_id).into(), options);
        self.reached(call).await
    }

    async fn start(
        &self,
        conversation: &Conversation,
        messages: StartMessages,
    ) -> Result<StartOutcome, TurnError> {
        let input = start_input(conversation, &messages);
        let first = messages.first;
        let mut options = self.start_options(conversation);
        options.id_conflict_policy = WorkflowIdConflictPolicy::Fail;
        options
            .memo
            .get_or_insert_with(MemoValues::new)
            .insert(FIRST_MESSAGE, first.clone());
        match self
            .within(
                self.client
                    .start_workflow(AgentExecution::run, input.into(), options),
            )
            .await?
        {
            Ok(_) => Ok(StartOutcome::Started),
            Err(WorkflowStartError::AlreadyStarted { .. })
                if self.started_for(&conversation.id, &first).await? =>
            {
                Ok(StartOutcome::StartedBefore)
            }
            Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(StartOutcome::Busy),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn start_hooks(&self, hooks: &DueHooks) -> Result<HooksOutcome, TurnError> {
        self.start_hooks_once(hooks).await
    }

    async fn prepare(&self) -> Result<(), TurnError> {
        self.within(register_search_attributes(&self.client))
            .await?
            .map_err(unavailable)
    }

    async fn workflow(&self, conversation_id: &str) -> Result<Option<RunningWorkflow>, TurnError> {
        let described = self.describe(conversation_id).await?;
        let running =
            described.filter(|described| described.status() == WorkflowExecutionStatus::Running);
        Ok(running.map(|described| {
            let task = described.raw().pending_workflow_task.as_ref();
            let attempt = task.map_or(0, |task| task.attempt);
            RunningWorkflow {
                task_attempt: u32::try_from(attempt).unwrap_or(0),
            }
        }))
    }

    async fn running(&self, conversation_ids: &[String]) -> Result<HashSet<String>, TurnError> {
        self.list_running(conversation_ids).await
    }

    async fn cancel(
        &self,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<bool, TurnError> {
        let cancel = Cancel {
            message_id: Some(message_id.to_owned()),
            reason: reason.to_owned(),
        };
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = self.signal_options(format!("cancel/{message_id}"));
        let call = handle.signal(AgentExecution::cancel, cancel.into(), options);
        self.reached(call).await
    }

    async fn resolve_approval(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        answer: ResolveApproval,
    ) -> Result<ApprovalOutcome, TurnError> {
        let handle = asker(
            &self.client,
            AgentExecution::run,
            conversation_id,
            sub_agent,
        );
        // A repeated answer waits for the first update and enters the history once.
        let options = WorkflowExecuteUpdateOptions::builder()
            .update_id(ids::answer_id(&answer))
            .rpc_options(self.rpc_options())
            .build();
        let call = handle.execute_update(AgentExecution::resolve_approval, answer.into(), options);
        // The engine waits for a worker as long as the gateway waits for the engine.
        let Ok(answered) = tokio::time::timeout(self.options.timeout, call).await else {
            return Ok(ApprovalOutcome::Unanswered);
        };
        match answered {
            Ok(()) => Ok(ApprovalOutcome::Taken),
            Err(WorkflowUpdateError::Failed(refused)) => {
                let text = self.text_of(*refused).await?;
                let refusal = ApprovalRefusal::of_message(&text);
                Ok(ApprovalOutcome::Refused(refusal))
            }
            Err(WorkflowUpdateError::NotFound(_)) => Ok(ApprovalOutcome::NotRunning),
            Err(WorkflowUpdateError::Rpc(status)) if is_out_of_time(&status) => {
                Ok(ApprovalOutcome::Unanswered)
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn tool_result(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        execution_id: &str,
    ) -> Result<(), TurnError> {
        let stored = ToolResultStored {
            execution_id: execution_id.to_owned(),
        };
        let handle = asker(
            &self.client,
            AgentExecution::run,
            conversation_id,
            sub_agent,
        );
        let options = self.signal_options(format!("tool_result/{execution_id}"));
        self.reached(handle.signal(AgentExecution::tool_result, stored.into(), options))
            .await
            .map(drop)
    }

    async fn terminate(&self, conversation_id: &str, reason: &str) -> Result<(), TurnError> {
        let handle = handle(&self.client, AgentExecution::run, conversation_id);
        let options = WorkflowTerminateOptions::builder()
            .reason(reason.to_owned())
            .rpc_options(self.rpc_options());
        self.reached(handle.terminate(options.build()))
            .await
            .map(drop)
    }

    async fn delete_runs(&self, conversation_id: &str) -> Result<(), TurnError> {
        self.delete_all_runs(conversation_id).await
    }
}

/// Returns the priority of a tenant's workflows. Sub-agents, hooks, activities and later runs inherit the priority
/// (docs/engine.md, tenants share workers).
pub(super) fn priority_of(tenant_id: &str) -> Priority {
    let mut priority = Priority::default();
    priority.fairness_key = Some(ids::fairness_key(tenant_id));
    priority
}

/// Returns a handle of the workflow that asked: the conversation's workflow, or a sub-agent's workflow.
fn asker<W: HasWorkflowDefinition>(
    client: &Client,
    _definition: W,
    conversation_id: &str,
    sub_agent: Option<&str>,
) -> WorkflowHandle<Client, W> {
    let own = || ids::workflow_id(conversation_id);
    client.get_workflow_handle(sub_agent.map_or_else(own, |call| {
        ids::sub_agent_workflow_id(conversation_id, call)
    }))
}

/// Returns a handle typed by the workflow's definition. The workflow's state is not `Send`, so a handle typed by the
/// workflow itself would not be `Send` either.
fn handle<W: HasWorkflowDefinition>(
    client: &Client,
    _definition: W,
    conversation_id: &str,
) -> WorkflowHandle<Client, W> {
    client.get_workflow_handle(ids::workflow_id(conversation_id))
}

fn is_out_of_time(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled)
}

pub(super) fn unavailable(error: impl Error + Send + Sync + 'static) -> TurnError {
    TurnError(Box::new(error))
}
