//! A model of Temporal: workflows, their histories, workflow tasks, activities, signals and updates.
//!
//! History is the truth. A workflow task takes the new events of a run. When a worker completes the task, the model
//! appends the task to the history and applies the task's commands. A task with an end of the run is refused when a
//! newer event has arrived (the engine's `UnhandledCommand`). The model has no time: what time would cause (an attempt
//! of a dead worker times out, a timer fires) is an event that the schedule may choose.
//!
//! Must not be here: how a worker runs the workflow's code (`worker.rs`).

mod children;
mod commands;
mod reset;
mod run;
mod updates;

use std::collections::BTreeMap;

use temporalio_common::protos::{
    coresdk::workflow_activation::{SignalWorkflow, workflow_activation_job::Variant as Job},
    temporal::api::common::v1::Payload,
};

pub use self::{
    children::{Child, Children, Parent},
    run::{Activity, ActivityState, Attempt, CommittedTask, Run, RunStatus, TaskOf, at},
    updates::Update,
};

/// The position of a run among all runs.
pub type RunNumber = usize;

/// The model of the engine.
#[derive(Default)]
pub struct Engine {
    runs: Vec<Run>,
    newest: BTreeMap<String, RunNumber>,
    /// The model's clock, in milliseconds. The schedule moves the clock.
    pub now_ms: u64,
    attempts: u64,
    /// The attempts without a run, because the engine has ended the run.
    cut: Vec<Attempt>,
    /// Commands that the model does not know.
    pub unknown_commands: Vec<String>,
}

/// The result of a completed workflow task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// The task is in the history.
    Yes,
    /// A newer event arrived beside the end of the run. The task is made again.
    UnhandledCommand,
    /// The engine has given the task to another worker, or the run has ended.
    NotFound,
}

impl Engine {
    /// Returns the newest run of a workflow id while it runs.
    pub fn running(&self, workflow_id: &str) -> Option<RunNumber> {
        let newest = *self.newest.get(workflow_id)?;
        (self.run(newest)?.status == RunStatus::Running).then_some(newest)
    }

    /// Returns a run.
    pub fn run(&self, number: RunNumber) -> Option<&Run> {
        self.runs.get(number)
    }

    /// Returns a run.
    pub fn run_mut(&mut self, number: RunNumber) -> Option<&mut Run> {
        self.runs.get_mut(number)
    }

    /// Returns the runs by number.
    pub fn runs(&self) -> impl Iterator<Item = (RunNumber, &Run)> {
        self.runs.iter().enumerate()
    }

    /// Returns true while a workflow runs.
    pub fn has_running(&self) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|run| run.status == RunStatus::Running)
    }

    /// Returns a timer of a running workflow.
    pub fn first_timer(&self) -> Option<(RunNumber, u32)> {
        let running = self
            .runs()
            .filter(|(_, run)| run.status == RunStatus::Running);
        let mut timers = running.filter_map(|(number, run)| Some((number, *run.timers.first()?)));
        timers.next()
    }

    /// Starts a workflow. Returns false when a workflow with the id runs.
    pub fn start(&mut self, workflow_id: &str, input: Payload, first_message: &str) -> bool {
        if self.running(workflow_id).is_some() {
            return false;
        }
        let number = self.runs.len();
        let mut run = Run::new(number, workflow_id, None, input, self.now_ms);
        run.first_message = Some(first_message.to_owned());
        self.add(run);
        true
    }

    /// Starts a workflow of a type, unless the engine has ever had a workflow with the id.
    pub fn start_once(&mut self, workflow_id: &str, workflow_type: &str, input: Payload) -> bool {
        if self.newest.contains_key(workflow_id) {
            return false;
        }
        let run = Run::new(self.runs.len(), workflow_id, None, input, self.now_ms);
        self.add(run.of_type(workflow_type.to_owned(), None));
        true
    }

    fn add(&mut self, run: Run) {
        self.newest.insert(run.workflow_id.clone(), self.runs.len());
        self.runs.push(run);
    }

    /// Signals the running workflow. Returns false without a running workflow. A known request id changes nothing.
    pub fn signal(
        &mut self,
        workflow_id: &str,
        name: &str,
        input: Payload,
        request_id: Option<&str>,
    ) -> bool {
        let Some(run) = self.running(workflow_id).and_then(|it| self.run_mut(it)) else {
            return false;
        };
        if let Some(request_id) = request_id
            && !run.request_ids.insert(request_id.to_owned())
        {
            return true;
        }
        run.signals += 1;
        run.news.push(Job::SignalWorkflow(SignalWorkflow {
            signal_name: name.to_owned(),
            input: vec![input],
            ..SignalWorkflow::default()
        }));
        true
    }

    /// Signals the running workflow. Starts the workflow first when no workflow runs.
    pub fn signal_with_start(
        &mut self,
        workflow_id: &str,
        start_input: Payload,
        name: &str,
        input: Payload,
    ) {
        if self.running(workflow_id).is_none() {
            let run = Run::new(self.runs.len(), workflow_id, None, start_input, self.now_ms);
            self.add(run);
        }
        self.signal(workflow_id, name, input, None);
    }

    /// Asks the running workflow to end, like `temporal workflow cancel`.
    pub fn cancel(&mut self, workflow_id: &str) -> bool {
        let Some(run) = self.running(workflow_id).and_then(|it| self.run_mut(it)) else {
            return false;
        };
        run.ask_to_end();
        true
    }

    /// Ends the running workflow at once.
    pub fn terminate(&mut self, workflow_id: &str) {
        if let Some(number) = self.running(workflow_id) {
            self.end_run(number, RunStatus::Terminated);
        }
    }

    /// Ends a run, and notes the attempts that may still run at their workers.
    fn end_run(&mut self, number: RunNumber, status: RunStatus) {
        let Some(run) = self.runs.get_mut(number) else {
            return;
        };
        if run.status == RunStatus::Running {
            self.cut.extend(run.attempts());
            run.close(status);
            self.closed(number, None);
        }
    }

    /// Takes the attempts without a run.
    pub fn take_cut(&mut self) -> Vec<Attempt> {
        std::mem::take(&mut self.cut)
    }

    /// Gives a run's workflow task to a worker: all new events of the run. `None` when the run has no new event or its
    /// task is at another worker.
    pub fn begin_task(&mut self, number: RunNumber, worker: usize) -> Option<TaskOf> {
        self.attempts += 1;
        let (attempt, now_ms) = (self.attempts, self.now_ms);
        let run = self.run_mut(number)?;
        if !run.has_task() {
            return None;
        }
        let task = TaskOf {
            attempt,
            worker,
            taken: run.news.len(),
        };
        run.task = Some(task);
        run.task_time_ms = now_ms;
        Some(task)
    }

    /// Takes a workflow task away from a worker, because the worker did not answer in time.
    pub fn time_out_task(&mut self, number: RunNumber) {
        if let Some(run) = self.run_mut(number) {
            run.task = None;
        }
    }

    /// Returns true while the worker has the task.
    pub fn has_task(&self, number: RunNumber, task: TaskOf) -> bool {
        let run = self.run(number);
        run.is_some_and(|run| run.status == RunStatus::Running && run.task == Some(task))
    }

    /// Completes a workflow task.
    pub fn complete_task(
        &mut self,
        number: RunNumber,
        task: TaskOf,
        mut committed: CommittedTask,
    ) -> Committed {
        if !self.has_task(number, task) {
            return Committed::NotFound;
        }
        let Some(run) = self.run_mut(number) else {
            return Committed::NotFound;
        };
        run.task = None;
        if committed.has_end() && run.has_newer_event(task) {
            return Committed::UnhandledCommand;
        }
        run.news.drain(..task.taken);
        run.take_responses(&mut committed);
        let commands = committed.commands.clone();
        run.history.push(committed);
        self.apply(number, commands);
        Committed::Yes
    }

    /// Starts an attempt of an activity at a worker.
    pub fn start_activity(
        &mut self,
        number: RunNumber,
        seq: u32,
        worker: usize,
    ) -> Option<(Attempt, Activity)> {
        self.attempts += 1;
        let id = self.attempts;
        let activity = self.run_mut(number)?.activities.get_mut(&seq)?;
        if activity.state != ActivityState::Scheduled {
            return None;
        }
        let attempt = Attempt {
            run: number,
            seq,
            id,
            worker,
        };
        activity.number += 1;
        activity.state = ActivityState::Started(attempt);
        Some((attempt, activity.clone()))
    }

    /// Returns the activity of an attempt while the engine waits for the attempt.
    pub fn activity_of(&mut self, attempt: Attempt) -> Option<&mut Activity> {
        let run = self.run_mut(attempt.run)?;
        if run.status != RunStatus::Running {
            return None;
        }
        let activity = run.activities.get_mut(&attempt.seq)?;
        (activity.state == ActivityState::Started(attempt)).then_some(activity)
    }

    /// Returns the attempts of the running workflow that are at one of the workers.
    pub fn attempts_of(&self, workflow_id: &str, workers: &[usize]) -> Vec<Attempt> {
        let run = self.running(workflow_id).and_then(|it| self.run(it));
        run.into_iter()
            .flat_map(Run::attempts)
            .filter(|attempt| workers.contains(&attempt.worker))
            .collect()
    }

    /// The answer to a heartbeat: true when the attempt must stop.
    pub fn must_stop(&mut self, attempt: Attempt) -> bool {
        self.activity_of(attempt)
            .is_none_or(|activity| activity.is_cancel_requested)
    }

    /// Ends an attempt with a result. A late result of a replaced attempt changes nothing.
    pub fn end_activity(&mut self, attempt: Attempt, end: run::ActivityEnd) {
        if self.activity_of(attempt).is_none() {
            return;
        }
        if let Some(run) = self.run_mut(attempt.run) {
            run.resolve_activity(attempt.seq, end);
        }
    }

    /// Schedules the next attempt of an activity, whose attempt has failed or timed out.
    pub fn retry_activity(&mut self, attempt: Attempt) {
        let Some(activity) = self.activity_of(attempt) else {
            return;
        };
        if activity.is_cancel_requested {
            self.end_activity(attempt, run::ActivityEnd::Cancelled);
        } else {
            activity.state = ActivityState::Scheduled;
        }
    }
}

pub use self::run::ActivityEnd;
