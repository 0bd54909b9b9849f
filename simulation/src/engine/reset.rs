//! The reset of a workflow to an earlier workflow task, like `temporal workflow reset`.

use temporalio_common::protos::coresdk::{
    workflow_activation::workflow_activation_job::Variant as Job,
    workflow_commands::workflow_command::Variant as Command,
};

use super::{
    Activity, ActivityEnd, ActivityState, CommittedTask, Engine, Run, RunNumber, RunStatus, Update,
};

impl Engine {
    /// Returns the newest run of a workflow id, and the number of its workflow tasks to which the run may be reset: the
    /// engine resets no run to a task behind the start of a child workflow that runs.
    pub fn newest_run(&self, workflow_id: &str) -> Option<(RunNumber, usize)> {
        let newest = *self.newest.get(workflow_id)?;
        let run = self.run(newest)?;
        let starts_child = |task: &CommittedTask| {
            let mut commands = task.commands.iter();
            commands.any(|command| {
                matches!(
                    command.variant,
                    Some(Command::StartChildWorkflowExecution(_))
                )
            })
        };
        let first = run.history.iter().position(starts_child);
        Some((newest, first.map_or(run.history.len(), |first| first + 1)))
    }

    /// Resets a workflow: a new run has the history before a workflow task, and the later signals and updates come again.
    /// The run before ends as terminated.
    pub fn reset(&mut self, number: RunNumber, task: usize) {
        let next = self.runs.len();
        let now_ms = self.now_ms;
        let Some(old) = self.runs.get(number) else {
            return;
        };
        let Some(undone) = old.history.get(task) else {
            return;
        };
        let mut run = Run::new(next, &old.workflow_id, None, old.input(), now_ms);
        run.first_run_id.clone_from(&old.first_run_id);
        run.init = old.init.clone();
        run.first_message.clone_from(&old.first_message);
        run.request_ids.clone_from(&old.request_ids);
        run.history = old.history.iter().take(task).cloned().collect();
        run.news = events(undone);
        run.redo();
        for later in old.history.iter().skip(task + 1) {
            let asked = events(later).into_iter().filter(comes_again);
            run.news.extend(asked);
        }
        run.news
            .extend(old.news.iter().filter(|job| comes_again(job)).cloned());
        run.admit_updates();
        // The children go on, and the new run finds their ids taken.
        if let Some(old) = self.runs.get_mut(number) {
            old.children.clear();
        }
        self.end_run(number, RunStatus::Terminated);
        self.add(run);
    }
}

/// Returns the events of the history before a workflow task, and after the task before.
fn events(task: &CommittedTask) -> Vec<Job> {
    let first = task.activations.first().into_iter();
    first
        .flat_map(|first| &first.jobs)
        .filter_map(|job| job.variant.clone())
        .collect()
}

/// The events that a reset takes over from the undone part of a history.
fn comes_again(job: &Job) -> bool {
    matches!(job, Job::SignalWorkflow(_) | Job::DoUpdate(_))
}

impl Run {
    /// Makes the activities and timers that the history has begun and not ended.
    fn redo(&mut self) {
        let history = std::mem::take(&mut self.history);
        for task in &history {
            self.end_all(&events(task));
            for command in &task.commands {
                if let Some(command) = &command.variant {
                    self.begin_one(command);
                }
            }
        }
        self.history = history;
        let news = self.news.clone();
        self.end_all(&news);
        let activities = self.activities.iter();
        let cancelled: Vec<_> = activities
            .filter(|(_, activity)| activity.is_cancel_requested)
            .map(|(seq, _)| *seq)
            .collect();
        for seq in cancelled {
            self.resolve_activity(seq, ActivityEnd::Cancelled);
        }
    }

    fn end_all(&mut self, events: &[Job]) {
        for event in events {
            match event {
                Job::ResolveActivity(resolved) if !resolved.is_local => {
                    self.activities.remove(&resolved.seq);
                }
                Job::FireTimer(fired) => {
                    self.timers.remove(&fired.seq);
                }
                _ => {}
            }
        }
    }

    fn begin_one(&mut self, command: &Command) {
        match command {
            Command::ScheduleActivity(scheduled) => {
                let activity = Activity {
                    name: scheduled.activity_type.clone(),
                    input: scheduled.arguments.first().cloned().unwrap_or_default(),
                    state: ActivityState::Scheduled,
                    is_cancel_requested: false,
                    number: 0,
                };
                self.activities.insert(scheduled.seq, activity);
            }
            Command::RequestCancelActivity(cancel) => {
                if let Some(activity) = self.activities.get_mut(&cancel.seq) {
                    activity.is_cancel_requested = true;
                }
            }
            Command::StartTimer(timer) => {
                self.timers.insert(timer.seq);
            }
            Command::CancelTimer(timer) => {
                self.timers.remove(&timer.seq);
            }
            _ => {}
        }
    }

    /// Makes the updates of the new events wait for a task again. Updates of the kept history have been answered.
    fn admit_updates(&mut self) {
        for job in &mut self.news {
            if let Job::DoUpdate(update) = job {
                update.run_validator = true;
                self.updates.insert(update.id.clone(), Update::Admitted);
            }
        }
    }
}
