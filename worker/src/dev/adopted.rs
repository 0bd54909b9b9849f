//! Checks a Temporal server that ran before `everturn dev`. The server is used only if no other worker polls the task
//! queue.

use anyhow::{Context, bail};
use temporalio_client::Client;
use temporalio_common::protos::temporal::api::{
    enums::v1::TaskQueueType, taskqueue::v1::TaskQueue,
    workflowservice::v1::DescribeTaskQueueRequest,
};

/// Returns an error if another worker of this machine polls the task queue. That worker has another database, and
/// would fail turns whose messages it cannot find.
pub(super) async fn check(client: &Client, task_queue: &str, address: &str) -> anyhow::Result<()> {
    let request = DescribeTaskQueueRequest {
        namespace: client.options().namespace.clone(),
        task_queue: Some(TaskQueue {
            name: task_queue.to_owned(),
            ..TaskQueue::default()
        }),
        task_queue_type: TaskQueueType::Workflow as i32,
        ..DescribeTaskQueueRequest::default()
    };
    let described = client
        .connection()
        .workflow_service()
        .describe_task_queue(tonic::Request::new(request))
        .await;
    let described =
        described.with_context(|| format!("the server on {address} is not a Temporal server"))?;
    // The server lists pollers for minutes after their end. Therefore the check looks for the poller's process on this
    // machine.
    let pollers = described.into_inner().pollers;
    if let Some(poller) = pollers.iter().find(|poller| is_alive(&poller.identity)) {
        bail!(
            "another worker ({}) already serves the task queue `{task_queue}` of the Temporal server on {address}. Stop \
             the worker, or choose another --temporal-port or --task-queue",
            poller.identity
        );
    }
    Ok(())
}

/// True when the process of this identity, `<pid>@<machine>`, runs.
fn is_alive(identity: &str) -> bool {
    let pid = identity.split('@').next().unwrap_or_default();
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pid.parse::<u32>().is_ok() && command.contains("everturn")
}
