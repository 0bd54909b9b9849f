//! Child workflows: their start, their cancel, and their end for the parent.

use std::collections::BTreeMap;

use temporalio_common::protos::{
    coresdk::{
        child_workflow::{
            Cancellation, ChildWorkflowResult, Failure as ChildFailed, ParentClosePolicy,
            StartChildWorkflowExecutionFailedCause, Success, child_workflow_result::Status,
        },
        workflow_activation::{
            CancelWorkflow, ResolveChildWorkflowExecution, ResolveChildWorkflowExecutionStart,
            ResolveChildWorkflowExecutionStartFailure, ResolveChildWorkflowExecutionStartSuccess,
            resolve_child_workflow_execution_start::Status as StartStatus,
            workflow_activation_job::Variant as Job,
        },
        workflow_commands::StartChildWorkflowExecution,
    },
    temporal::api::{
        common::v1::Payload,
        failure::v1::{
            ApplicationFailureInfo, CanceledFailureInfo, ChildWorkflowExecutionFailureInfo,
            Failure, TerminatedFailureInfo, failure::FailureInfo,
        },
    },
};

use super::{Engine, Run, RunNumber, RunStatus};

/// A child workflow that has not ended.
#[derive(Debug, Clone)]
pub struct Child {
    /// The workflow's id.
    pub workflow_id: String,
    /// The end of the parent terminates the child.
    pub ends_with_parent: bool,
}

/// The parent of a run: its run, and the child's number there.
pub type Parent = (RunNumber, u32);

/// The children of a run, by their numbers.
pub type Children = BTreeMap<u32, Child>;

impl Engine {
    /// Starts a child workflow, unless a workflow with the id runs.
    pub(super) fn start_child(&mut self, parent: RunNumber, start: StartChildWorkflowExecution) {
        let (seq, id) = (start.seq, start.workflow_id.clone());
        let is_taken = self.running(&id).is_some();
        let next = self.runs.len();
        let status = if is_taken {
            StartStatus::Failed(ResolveChildWorkflowExecutionStartFailure {
                workflow_id: id,
                workflow_type: start.workflow_type,
                cause: StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists.into(),
            })
        } else {
            let ends_with_parent = start.parent_close_policy() != ParentClosePolicy::Abandon;
            let input = start.input.into_iter().next().unwrap_or_default();
            let run = Run::new(next, &id, None, input, self.now_ms);
            let run = run.of_type(start.workflow_type, Some((parent, seq)));
            let run_id = run.run_id.clone();
            self.add(run);
            let child = Child {
                workflow_id: id,
                ends_with_parent,
            };
            if let Some(parent) = self.runs.get_mut(parent) {
                parent.children.insert(seq, child);
            }
            StartStatus::Succeeded(ResolveChildWorkflowExecutionStartSuccess { run_id })
        };
        if let Some(parent) = self.runs.get_mut(parent) {
            let started = ResolveChildWorkflowExecutionStart {
                seq,
                status: Some(status),
            };
            parent
                .news
                .push(Job::ResolveChildWorkflowExecutionStart(started));
        }
    }

    /// Asks a child workflow to end.
    pub(super) fn cancel_child(&mut self, parent: RunNumber, seq: u32) {
        let parent = self.runs.get(parent);
        let child = parent.and_then(|parent| parent.children.get(&seq));
        if let Some(id) = child.map(|child| child.workflow_id.clone()) {
            self.cancel(&id);
        }
    }

    /// Tells the parent of an ended run about the end, and ends the children that end with the run.
    pub(super) fn closed(&mut self, number: RunNumber, result: Option<Payload>) {
        let Some(run) = self.runs.get_mut(number) else {
            return;
        };
        let (status, parent) = (run.status, run.parent);
        let children = std::mem::take(&mut run.children);
        for child in children.into_values().filter(|it| it.ends_with_parent) {
            self.terminate(&child.workflow_id);
        }
        if status == RunStatus::ContinuedAsNew {
            return;
        }
        let Some((parent, seq)) = parent else { return };
        if let Some(parent) = self.runs.get_mut(parent)
            && parent.children.remove(&seq).is_some()
        {
            let ended = ResolveChildWorkflowExecution {
                seq,
                result: Some(ChildWorkflowResult {
                    status: Some(end_of(status, result)),
                }),
            };
            parent.news.push(Job::ResolveChildWorkflowExecution(ended));
        }
    }
}

impl Run {
    /// Makes the run a run of another workflow type, perhaps with a parent.
    pub(super) fn of_type(mut self, workflow_type: String, parent: Option<Parent>) -> Self {
        self.init.workflow_type = workflow_type;
        self.news = vec![Job::InitializeWorkflow(self.init.clone())];
        self.parent = parent;
        self
    }

    /// Goes on with the type and the parent of the chain's run before.
    pub(super) fn follows(self, before: &Self) -> Self {
        self.of_type(before.init.workflow_type.clone(), before.parent)
    }

    /// Asks the run to end.
    pub(super) fn ask_to_end(&mut self) {
        if !self.is_cancel_requested {
            self.is_cancel_requested = true;
            self.news
                .push(Job::CancelWorkflow(CancelWorkflow::default()));
        }
    }
}

fn end_of(status: RunStatus, result: Option<Payload>) -> Status {
    let info = match status {
        RunStatus::Completed => return Status::Completed(Success { result }),
        RunStatus::Cancelled => FailureInfo::CanceledFailureInfo(CanceledFailureInfo::default()),
        RunStatus::Terminated => {
            FailureInfo::TerminatedFailureInfo(TerminatedFailureInfo::default())
        }
        RunStatus::Failed | RunStatus::Running | RunStatus::ContinuedAsNew => {
            FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default())
        }
    };
    let failure = Some(Failure {
        message: "the child workflow ended without a result".to_owned(),
        cause: Some(Box::new(Failure {
            message: format!("{status:?}"),
            failure_info: Some(info),
            ..Failure::default()
        })),
        failure_info: Some(FailureInfo::ChildWorkflowExecutionFailureInfo(
            ChildWorkflowExecutionFailureInfo::default(),
        )),
        ..Failure::default()
    });
    if status == RunStatus::Cancelled {
        Status::Cancelled(Cancellation { failure })
    } else {
        Status::Failed(ChildFailed { failure })
    }
}
