//! A run of a workflow: its history, its new events, and the work that it waits for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use temporalio_common::protos::{
    coresdk::{
        activity_result::{
            ActivityResolution, Cancellation, Failure as ActivityFailed, Success,
            activity_resolution::Status,
        },
        workflow_activation::{
            FireTimer, InitializeWorkflow, ResolveActivity, WorkflowActivation,
            workflow_activation_job::Variant as Job,
        },
        workflow_commands::{WorkflowCommand, workflow_command::Variant as Command},
    },
    temporal::api::{
        common::v1::Payload,
        failure::v1::{
            ActivityFailureInfo, ApplicationFailureInfo, CanceledFailureInfo, Failure,
            failure::FailureInfo,
        },
    },
};

use super::{Children, Parent, RunNumber, Update};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// The run goes on.
    Running,
    /// The run has ended with a result.
    Completed,
    /// The run has ended with a failure.
    Failed,
    /// The run has ended as cancelled.
    Cancelled,
    /// Another run of the chain goes on.
    ContinuedAsNew,
    /// An operator has ended the run.
    Terminated,
}

/// A workflow task at a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOf {
    /// Unique among all tasks.
    pub attempt: u64,
    /// The worker.
    pub worker: usize,
    /// The number of new events in the task.
    pub taken: usize,
}

/// A completed workflow task, as a replay needs it.
#[derive(Debug, Clone, Default)]
pub struct CommittedTask {
    /// The activations: the first one has the new events, later ones the results of local activities.
    pub activations: Vec<WorkflowActivation>,
    /// The commands of all activations.
    pub commands: Vec<WorkflowCommand>,
}

impl CommittedTask {
    /// Returns the names of the commands, for the story.
    pub fn names(&self) -> Vec<String> {
        let commands = self
            .commands
            .iter()
            .filter_map(|command| command.variant.as_ref());
        let name = |command: &Command| match command {
            Command::ScheduleActivity(activity) => activity.activity_type.clone(),
            Command::ScheduleLocalActivity(activity) => activity.activity_type.clone(),
            other => {
                let text = format!("{other:?}");
                let name = text.split(['(', ' ']).next().unwrap_or_default();
                name.to_owned()
            }
        };
        commands.map(name).collect()
    }

    /// True when the task ends the run.
    pub fn has_end(&self) -> bool {
        let mut commands = self.commands.iter();
        commands.any(|command| {
            matches!(
                command.variant,
                Some(
                    Command::CompleteWorkflowExecution(_)
                        | Command::FailWorkflowExecution(_)
                        | Command::CancelWorkflowExecution(_)
                        | Command::ContinueAsNewWorkflowExecution(_)
                )
            )
        })
    }
}

/// An attempt of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    /// The run.
    pub run: RunNumber,
    /// The activity's number in its run.
    pub seq: u32,
    /// Unique among all attempts.
    pub id: u64,
    /// The worker.
    pub worker: usize,
}

/// Where an activity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityState {
    /// No worker has an attempt.
    Scheduled,
    /// A worker has the attempt.
    Started(Attempt),
}

/// An activity that has not ended.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The activity's type.
    pub name: String,
    /// The only argument.
    pub input: Payload,
    /// Where the activity is.
    pub state: ActivityState,
    /// The run has asked the activity to end.
    pub is_cancel_requested: bool,
    /// The number of attempts.
    pub number: u32,
}

/// How an activity ends.
#[derive(Debug, Clone)]
pub enum ActivityEnd {
    /// With a result.
    Completed(Payload),
    /// With a failure that is not tried again.
    Failed {
        /// The type of the application's failure.
        code: String,
        /// A sentence.
        message: String,
        /// False when the engine may try a local activity again as an ordinary activity.
        is_final: bool,
    },
    /// As the run has asked.
    Cancelled,
}

impl ActivityEnd {
    /// Returns the event for the workflow.
    pub fn resolution(self, seq: u32, is_local: bool) -> Job {
        let status = match self {
            Self::Completed(result) => Status::Completed(Success {
                result: Some(result),
            }),
            Self::Failed {
                code,
                message,
                is_final,
            } => Status::Failed(ActivityFailed {
                failure: Some(of_activity(Failure {
                    message,
                    failure_info: Some(FailureInfo::ApplicationFailureInfo(
                        ApplicationFailureInfo {
                            r#type: code,
                            non_retryable: is_final,
                            ..ApplicationFailureInfo::default()
                        },
                    )),
                    ..Failure::default()
                })),
                ..ActivityFailed::default()
            }),
            Self::Cancelled => Status::Cancelled(Cancellation {
                failure: Some(of_activity(Failure {
                    message: "cancelled".to_owned(),
                    failure_info: Some(FailureInfo::CanceledFailureInfo(
                        CanceledFailureInfo::default(),
                    )),
                    ..Failure::default()
                })),
            }),
        };
        Job::ResolveActivity(ResolveActivity {
            seq,
            result: Some(ActivityResolution {
                status: Some(status),
            }),
            is_local,
        })
    }
}

fn of_activity(cause: Failure) -> Failure {
    Failure {
        message: "the activity ended without a result".to_owned(),
        cause: Some(Box::new(cause)),
        failure_info: Some(FailureInfo::ActivityFailureInfo(
            ActivityFailureInfo::default(),
        )),
        ..Failure::default()
    }
}

/// A run of a workflow.
#[derive(Debug, Clone)]
pub struct Run {
    /// The workflow's id.
    pub workflow_id: String,
    /// The run's id.
    pub run_id: String,
    /// The id of the first run of the chain.
    pub first_run_id: String,
    /// How the run stands.
    pub status: RunStatus,
    /// The first event.
    pub init: InitializeWorkflow,
    /// The completed workflow tasks.
    pub history: Vec<CommittedTask>,
    /// The events after the last completed workflow task.
    pub news: Vec<Job>,
    /// The workflow task at a worker.
    pub task: Option<TaskOf>,
    /// The time of the workflow task, in milliseconds.
    pub task_time_ms: u64,
    /// The activities that have not ended, by their numbers.
    pub activities: BTreeMap<u32, Activity>,
    /// The timers that have not fired, by their numbers.
    pub timers: BTreeSet<u32>,
    /// The request ids of signals.
    pub request_ids: BTreeSet<String>,
    /// The parent's run, and the number there.
    pub parent: Option<Parent>,
    /// The child workflows that have not ended, by their numbers.
    pub children: Children,
    /// The updates, by their ids.
    pub updates: BTreeMap<String, Update>,
    /// The number of signals in the history.
    pub signals: usize,
    /// Somebody has asked the run to end.
    pub is_cancel_requested: bool,
    /// The memo: the message for which the workflow was started without a signal.
    pub first_message: Option<String>,
}

impl Run {
    /// Makes a run. `before` is the run of the chain before this run.
    pub fn new(
        number: RunNumber,
        workflow_id: &str,
        before: Option<&Self>,
        input: Payload,
        now_ms: u64,
    ) -> Self {
        let run_id = format!("run-{number}");
        let first_run_id = before.map_or_else(|| run_id.clone(), |run| run.first_run_id.clone());
        let init = InitializeWorkflow {
            workflow_type: "agent-execution".to_owned(),
            workflow_id: workflow_id.to_owned(),
            arguments: vec![input],
            first_execution_run_id: first_run_id.clone(),
            original_execution_run_id: run_id.clone(),
            attempt: 1,
            start_time: Some(at(now_ms).into()),
            ..InitializeWorkflow::default()
        };
        Self {
            workflow_id: workflow_id.to_owned(),
            run_id,
            first_run_id,
            status: RunStatus::Running,
            news: vec![Job::InitializeWorkflow(init.clone())],
            init,
            history: Vec::new(),
            task: None,
            task_time_ms: now_ms,
            activities: BTreeMap::new(),
            timers: BTreeSet::new(),
            request_ids: BTreeSet::new(),
            parent: None,
            children: Children::new(),
            updates: BTreeMap::new(),
            signals: 0,
            is_cancel_requested: false,
            first_message: None,
        }
    }

    /// Returns the input of the workflow.
    pub fn input(&self) -> Payload {
        self.init.arguments.first().cloned().unwrap_or_default()
    }

    /// Returns the attempts of activities at workers.
    pub fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let activities = self.activities.values();
        activities.filter_map(|activity| match activity.state {
            ActivityState::Started(attempt) => Some(attempt),
            ActivityState::Scheduled => None,
        })
    }

    /// True when a worker may take a workflow task.
    pub fn has_task(&self) -> bool {
        self.status == RunStatus::Running && self.task.is_none() && !self.news.is_empty()
    }

    /// True when a newer event has arrived since a task was given. An update is no event before a task takes it.
    pub fn has_newer_event(&self, task: TaskOf) -> bool {
        let mut newer = self.news.iter().skip(task.taken);
        newer.any(|job| !matches!(job, Job::DoUpdate(_)))
    }

    /// Ends the run. Its activities learn of the end from their next heartbeat.
    pub fn close(&mut self, status: RunStatus) {
        self.status = status;
        self.task = None;
        self.news.clear();
        self.activities.clear();
        self.timers.clear();
    }

    /// Ends an activity with an event.
    pub fn resolve_activity(&mut self, seq: u32, end: ActivityEnd) {
        if self.activities.remove(&seq).is_some() {
            self.news.push(end.resolution(seq, false));
        }
    }

    /// Cancels a timer. As in the engine, the end of a timer that no task has taken yet is forgotten.
    pub fn cancel_timer(&mut self, seq: u32) {
        self.timers.remove(&seq);
        let is_end = |job: &Job| matches!(job, Job::FireTimer(fired) if fired.seq == seq);
        self.news.retain(|job| !is_end(job));
    }

    /// Fires a timer.
    pub fn fire_timer(&mut self, seq: u32) {
        if self.timers.remove(&seq) {
            self.news.push(Job::FireTimer(FireTimer { seq }));
        }
    }
}

/// Returns the model's time.
pub fn at(now_ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms)
}
