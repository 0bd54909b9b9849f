//! Registers the search attributes on the production server, and waits until they can be used. Each service of the
//! server learns of them after a delay of its own, and until then refuses workflows that have them.

use anyhow::{Context, ensure};
use everturn_proto::words::search_attribute;
use temporalio_client::Client;
use temporalio_common::protos::temporal::api::{
    command::v1::{
        Command, CompleteWorkflowExecutionCommandAttributes,
        UpsertWorkflowSearchAttributesCommandAttributes, command::Attributes,
    },
    common::v1::{Payload, SearchAttributes, WorkflowExecution, WorkflowType},
    enums::v1::{CommandType, WorkflowIdConflictPolicy},
    taskqueue::v1::TaskQueue,
    workflowservice::v1::{
        DeleteWorkflowExecutionRequest, PollWorkflowTaskQueueRequest,
        RespondWorkflowTaskCompletedRequest, StartWorkflowExecutionRequest,
    },
};
use tokio_util::sync::CancellationToken;
use tonic::Request;

/// Id, type and task queue of the workflow that tries whether the search attributes can be used.
const PROBE: &str = "everturn-stack-probe";

/// Registers the search attributes.
pub(crate) async fn register(client: &Client) -> anyhow::Result<()> {
    everturn_worker::connections::register_search_attributes(client, &CancellationToken::new())
        .await
}

/// Runs a workflow without a worker. Succeeds when it can be started with the search attributes, so the frontend knows
/// them, and can set them, so the history service knows them.
pub(crate) async fn are_usable(client: &Client) -> anyhow::Result<()> {
    let mut service = client.connection().workflow_service();
    let namespace = client.options().namespace.clone();
    let task_queue = TaskQueue {
        name: PROBE.to_owned(),
        ..TaskQueue::default()
    };
    let start = StartWorkflowExecutionRequest {
        namespace: namespace.clone(),
        workflow_id: PROBE.to_owned(),
        workflow_type: Some(WorkflowType {
            name: PROBE.to_owned(),
        }),
        task_queue: Some(task_queue.clone()),
        request_id: uuid::Uuid::new_v4().to_string(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::UseExisting.into(),
        search_attributes: Some(values()),
        ..StartWorkflowExecutionRequest::default()
    };
    service
        .start_workflow_execution(Request::new(start))
        .await
        .context("cannot start a workflow")?;
    let poll = PollWorkflowTaskQueueRequest {
        namespace: namespace.clone(),
        task_queue: Some(task_queue),
        identity: PROBE.to_owned(),
        ..PollWorkflowTaskQueueRequest::default()
    };
    let task = service
        .poll_workflow_task_queue(Request::new(poll))
        .await
        .context("cannot poll")?
        .into_inner();
    ensure!(!task.task_token.is_empty(), "no workflow task came");
    let completed = RespondWorkflowTaskCompletedRequest {
        namespace: namespace.clone(),
        task_token: task.task_token,
        identity: PROBE.to_owned(),
        commands: commands(),
        ..RespondWorkflowTaskCompletedRequest::default()
    };
    service
        .respond_workflow_task_completed(Request::new(completed))
        .await
        .context("a workflow cannot set them")?;
    // The server deletes lazily: the workflow disappears from the lists within a minute or two.
    let delete = DeleteWorkflowExecutionRequest {
        namespace,
        workflow_execution: Some(WorkflowExecution {
            workflow_id: PROBE.to_owned(),
            run_id: String::new(),
        }),
    };
    service
        .delete_workflow_execution(Request::new(delete))
        .await
        .context("cannot delete a workflow")?;
    Ok(())
}

fn values() -> SearchAttributes {
    let value = || Payload {
        metadata: [("encoding", "json/plain"), ("type", "Keyword")]
            .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
            .into(),
        data: format!("\"{PROBE}\"").into_bytes(),
        ..Payload::default()
    };
    SearchAttributes {
        indexed_fields: search_attribute::ALL
            .map(|name| (name.to_owned(), value()))
            .into(),
    }
}

fn commands() -> Vec<Command> {
    let command = |command_type: CommandType, attributes| Command {
        command_type: command_type.into(),
        attributes: Some(attributes),
        ..Command::default()
    };
    let set = UpsertWorkflowSearchAttributesCommandAttributes {
        search_attributes: Some(values()),
    };
    let complete = CompleteWorkflowExecutionCommandAttributes::default();
    vec![
        command(
            CommandType::UpsertWorkflowSearchAttributes,
            Attributes::UpsertWorkflowSearchAttributesCommandAttributes(set),
        ),
        command(
            CommandType::CompleteWorkflowExecution,
            Attributes::CompleteWorkflowExecutionCommandAttributes(complete),
        ),
    ]
}
