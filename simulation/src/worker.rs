//! Runs the workflow's code as a worker does: the code of the product, on the SDK's own instance of a workflow, between
//! the SDK and its host. The model is the host: it gives activations, and takes commands.
//!
//! A worker keeps instances in a cache. Without its instance, a worker makes a new one and gives it the whole history
//! again. The commands must then be equal: another order is a violation of the first invariant, pure workflow.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, task::Waker, time::Duration};

use everturn_store::{WorkerId, WorkerLease};
use everturn_workflows::{AfterTurn, AgentExecution};
use temporalio_common::{
    data_converters::DataConverter,
    protos::coresdk::{
        workflow_activation::{
            WorkflowActivation, WorkflowActivationJob, workflow_activation_job::Variant as Job,
        },
        workflow_commands::{
            CancelWorkflowExecution, CompleteWorkflowExecution, FailWorkflowExecution,
            UpdateResponse, WorkflowCommand, update_response::Response,
            workflow_command::Variant as Command,
        },
    },
};
use temporalio_workflow::{
    __private::sdk::{
        ActivationJobResult, GuestWorkflowInstance, MAIN_ROUTINE_ID, MainRoutineCompletion,
        RoutineCompletion, RoutineId, TerminalOutcome, UpdateRoutineCompletion, WorkflowHost,
        WorkflowInit, WorkflowInstance,
    },
    BaseWorkflowContext,
};

use crate::engine::{CommittedTask, Run, RunNumber, TaskOf, at};

/// The time for which a lease lasts without a renewal: the time of [`LOOKS`](crate::leases::LOOKS).
const LEASE: Duration = Duration::from_secs(2);

/// Returns the lease of a worker process.
pub(crate) fn lease_of(number: usize) -> WorkerLease {
    let worker = WorkerId::from(format!("w{number}"));
    WorkerLease {
        identity: worker.identity("simulated"),
        worker,
        duration: LEASE,
    }
}

/// Returns the number of a worker process.
pub(crate) fn number_of(worker: &WorkerId) -> Option<usize> {
    worker.as_str().strip_prefix('w')?.parse().ok()
}

/// The host of an instance: it takes the commands.
#[derive(Default)]
struct Commands(RefCell<Vec<WorkflowCommand>>);

impl WorkflowHost for Commands {
    fn set_current_details(&self, _details: String) {}

    fn push_command(&self, command: WorkflowCommand) {
        self.0.borrow_mut().push(command);
    }
}

impl Commands {
    fn push(&self, command: Command) {
        self.push_command(WorkflowCommand {
            variant: Some(command),
            ..WorkflowCommand::default()
        });
    }

    fn respond(&self, protocol_instance_id: String, response: Response) {
        self.push(Command::UpdateResponse(UpdateResponse {
            protocol_instance_id,
            response: Some(response),
        }));
    }
}

/// An instance of a workflow's run.
struct Instance {
    guest: Box<dyn WorkflowInstance>,
    commands: Rc<Commands>,
    /// The handlers of signals and updates that have not ended.
    routines: Vec<RoutineId>,
    /// The number of tasks of the history that the instance has seen.
    seen: usize,
}

/// A workflow task at a worker, with what has happened in it.
pub(crate) struct OpenTask {
    /// The task.
    pub(crate) task: TaskOf,
    /// What the history gets with the task.
    pub(crate) done: CommittedTask,
    /// The local activities that have not ended.
    pub(crate) local: usize,
}

/// The workflow side of a worker process.
#[derive(Default)]
pub(crate) struct Worker {
    instances: BTreeMap<RunNumber, Instance>,
    /// The workflow tasks that wait for local activities.
    pub(crate) open: BTreeMap<RunNumber, OpenTask>,
}

/// A local activity that a task has scheduled.
pub(crate) struct LocalActivity {
    /// Its number in the run.
    pub(crate) seq: u32,
    /// Its type.
    pub(crate) name: String,
    /// Its only argument.
    pub(crate) input: temporalio_common::protos::temporal::api::common::v1::Payload,
}

impl Worker {
    /// Forgets an instance.
    pub(crate) fn forget(&mut self, number: RunNumber) {
        self.instances.remove(&number);
        self.open.remove(&number);
    }

    /// Begins a workflow task. Returns the local activities that the task needs.
    ///
    /// # Errors
    ///
    /// A sentence when the workflow's code fails the task, or behaves differently in a replay.
    pub(crate) fn begin(
        &mut self,
        number: RunNumber,
        run: &Run,
        task: TaskOf,
    ) -> Result<Vec<LocalActivity>, String> {
        // An instance that has seen a part of an abandoned task is of no use.
        if self.open.contains_key(&number) {
            self.forget(number);
        }
        let is_current = |instance: &Instance| instance.seen == run.history.len();
        if !self.instances.get(&number).is_some_and(is_current) {
            let instance = Instance::replay(run)?;
            self.instances.insert(number, instance);
        }
        let jobs = run.news.iter().take(task.taken).cloned().collect();
        let open = OpenTask {
            task,
            done: CommittedTask::default(),
            local: 0,
        };
        self.open.insert(number, open);
        self.activate(number, run, jobs)
    }

    /// Gives the result of a local activity to the workflow's code.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(crate) fn resolve(
        &mut self,
        number: RunNumber,
        run: &Run,
        resolution: Job,
    ) -> Result<Vec<LocalActivity>, String> {
        if let Some(open) = self.open.get_mut(&number) {
            open.local = open.local.saturating_sub(1);
        }
        self.activate(number, run, vec![resolution])
    }

    fn activate(
        &mut self,
        number: RunNumber,
        run: &Run,
        jobs: Vec<Job>,
    ) -> Result<Vec<LocalActivity>, String> {
        let (Some(instance), Some(open)) =
            (self.instances.get_mut(&number), self.open.get_mut(&number))
        else {
            return Ok(Vec::new());
        };
        let activation = activation(run, jobs);
        let commands = instance.drive(activation.clone())?;
        let local: Vec<_> = commands.iter().filter_map(local_activity).collect();
        open.local += local.len();
        open.done.activations.push(activation);
        open.done.commands.extend(commands);
        Ok(local)
    }

    /// Takes a task whose local activities have all ended, to complete the task.
    pub(crate) fn finished(&mut self, number: RunNumber) -> Option<(TaskOf, CommittedTask)> {
        let is_finished = self.open.get(&number).is_some_and(|open| open.local == 0);
        let open = is_finished.then(|| self.open.remove(&number)).flatten()?;
        if let Some(instance) = self.instances.get_mut(&number) {
            instance.seen += 1;
        }
        Some((open.task, open.done))
    }
}

fn local_activity(command: &WorkflowCommand) -> Option<LocalActivity> {
    let Some(Command::ScheduleLocalActivity(scheduled)) = &command.variant else {
        return None;
    };
    Some(LocalActivity {
        seq: scheduled.seq,
        name: scheduled.activity_type.clone(),
        input: scheduled.arguments.first().cloned().unwrap_or_default(),
    })
}

/// Makes an activation. Signals and updates come before results, as the SDK's core orders them.
fn activation(run: &Run, jobs: Vec<Job>) -> WorkflowActivation {
    let rank = |job: &Job| match job {
        Job::InitializeWorkflow(_) => 0,
        Job::SignalWorkflow(_) | Job::DoUpdate(_) => 1,
        _ => 2,
    };
    let mut jobs = jobs;
    jobs.sort_by_key(rank);
    WorkflowActivation {
        run_id: run.run_id.clone(),
        timestamp: Some(at(run.task_time_ms).into()),
        history_length: u32::try_from(run.history.len() * 8).unwrap_or(u32::MAX),
        jobs: jobs
            .into_iter()
            .map(|job| WorkflowActivationJob { variant: Some(job) })
            .collect(),
        ..WorkflowActivation::default()
    }
}

impl Instance {
    fn new(run: &Run) -> Result<Self, String> {
        let commands = Rc::new(Commands::default());
        let converter = DataConverter::default();
        let init = WorkflowInit {
            namespace: "default".to_owned(),
            task_queue: "everturn".to_owned(),
            run_id: run.run_id.clone(),
            initialize_workflow: run.init.clone(),
        };
        let payloads = converter.payload_converter().clone();
        let host: Rc<dyn WorkflowHost> = Rc::clone(&commands) as _;
        let context = BaseWorkflowContext::from_raw(init, converter, host, None, Vec::new());
        let arguments = run.init.arguments.clone();
        let guest = match run.init.workflow_type.as_str() {
            "after-turn" => {
                GuestWorkflowInstance::<AfterTurn>::instantiate(arguments, payloads, context)
            }
            _ => GuestWorkflowInstance::<AgentExecution>::instantiate(arguments, payloads, context),
        };
        let guest = guest.map_err(|error| error.to_string())?;
        Ok(Self {
            guest,
            commands,
            routines: Vec::new(),
            seen: 0,
        })
    }

    /// Makes an instance, and gives it the history of the run.
    fn replay(run: &Run) -> Result<Self, String> {
        let mut instance = Self::new(run)?;
        for task in &run.history {
            let mut commands = Vec::new();
            for activation in &task.activations {
                let replayed = WorkflowActivation {
                    is_replaying: true,
                    ..activation.clone()
                };
                commands.extend(instance.drive(replayed)?);
            }
            if commands != task.commands {
                return Err(format!(
                    "the replay of {} asks for other work: {commands:?} instead of {:?}",
                    run.run_id, task.commands
                ));
            }
            instance.seen += 1;
        }
        Ok(instance)
    }

    /// Applies an activation, and polls every routine until none makes progress. Returns the commands.
    fn drive(&mut self, activation: WorkflowActivation) -> Result<Vec<WorkflowCommand>, String> {
        let waker = Waker::noop();
        let updates: Vec<_> = activation.jobs.iter().map(update_of).collect();
        let applied = self.guest.activate(activation, waker);
        let applied = applied.map_err(|failure| failure.message)?;
        for (result, update) in applied.job_results.into_iter().zip(updates) {
            match result {
                ActivationJobResult::None | ActivationJobResult::QueryResponse(_) => {}
                ActivationJobResult::StartedRoutine(started) => {
                    self.routines.push(started.routine_id);
                    if let Some(id) = update {
                        self.commands.respond(id, Response::Accepted(()));
                    }
                }
                ActivationJobResult::UpdateRejected(failure) => {
                    if let Some(id) = update {
                        self.commands.respond(id, Response::Rejected(*failure));
                    }
                }
            }
        }
        while self.poll_all(waker)? {}
        Ok(self.commands.0.take())
    }

    /// Polls every routine once. Returns true when another poll may make progress.
    fn poll_all(&mut self, waker: &Waker) -> Result<bool, String> {
        let mut has_moved = false;
        for routine in std::mem::take(&mut self.routines) {
            let polled = self.guest.poll_routine(routine, waker);
            let polled = polled.map_err(|failure| failure.message)?;
            has_moved |= polled.made_progress;
            match polled.completion {
                None => self.routines.push(routine),
                Some(RoutineCompletion::Signal(Ok(()))) => {}
                Some(RoutineCompletion::Signal(Err(failure))) => return Err(failure.message),
                Some(RoutineCompletion::Update(UpdateRoutineCompletion::Completed {
                    protocol_instance_id,
                    result,
                })) => self
                    .commands
                    .respond(protocol_instance_id, Response::Completed(result)),
                Some(RoutineCompletion::Update(UpdateRoutineCompletion::Rejected {
                    protocol_instance_id,
                    failure,
                })) => self
                    .commands
                    .respond(protocol_instance_id, Response::Rejected(*failure)),
                Some(RoutineCompletion::Main(_)) => {
                    return Err("a handler returned the end of the run".to_owned());
                }
            }
        }
        let polled = self.guest.poll_routine(MAIN_ROUTINE_ID, waker);
        let polled = polled.map_err(|failure| failure.message)?;
        has_moved |= polled.made_progress;
        match polled.completion {
            Some(RoutineCompletion::Main(MainRoutineCompletion::Blocked)) => Ok(has_moved),
            Some(RoutineCompletion::Main(MainRoutineCompletion::TaskFailed(failed))) => {
                Err(failed.failure.message)
            }
            Some(RoutineCompletion::Main(MainRoutineCompletion::Terminal(end))) => {
                self.commands.push(command_of(*end));
                Ok(false)
            }
            other => Err(format!("the run returned {other:?}")),
        }
    }
}

fn update_of(job: &WorkflowActivationJob) -> Option<String> {
    match &job.variant {
        Some(Job::DoUpdate(update)) => Some(update.protocol_instance_id.clone()),
        _ => None,
    }
}

fn command_of(end: TerminalOutcome) -> Command {
    match end {
        TerminalOutcome::Completed(result) => {
            Command::CompleteWorkflowExecution(CompleteWorkflowExecution {
                result: Some(result),
            })
        }
        TerminalOutcome::Failed(failure) => Command::FailWorkflowExecution(FailWorkflowExecution {
            failure: Some(*failure),
        }),
        TerminalOutcome::Cancelled(details) => {
            Command::CancelWorkflowExecution(CancelWorkflowExecution { details })
        }
        TerminalOutcome::ContinueAsNew(new) => Command::ContinueAsNewWorkflowExecution(*new),
    }
}
