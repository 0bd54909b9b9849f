//! Applies the commands of a completed workflow task.

use temporalio_common::protos::coresdk::workflow_commands::{
    WorkflowCommand, workflow_command::Variant as Command,
};

use super::{Activity, ActivityEnd, ActivityState, Engine, Run, RunNumber, RunStatus};

impl Engine {
    pub(super) fn apply(&mut self, number: RunNumber, commands: Vec<WorkflowCommand>) {
        for command in commands {
            if let Some(command) = command.variant {
                self.apply_one(number, command);
            }
        }
    }

    fn apply_one(&mut self, number: RunNumber, command: Command) {
        let next = self.runs.len();
        let now_ms = self.now_ms;
        let Some(run) = self.runs.get_mut(number) else {
            return;
        };
        match command {
            Command::ScheduleActivity(scheduled) => {
                let activity = Activity {
                    name: scheduled.activity_type,
                    input: scheduled.arguments.into_iter().next().unwrap_or_default(),
                    state: ActivityState::Scheduled,
                    is_cancel_requested: false,
                    number: 0,
                };
                run.activities.insert(scheduled.seq, activity);
            }
            Command::RequestCancelActivity(cancel) => cancel_activity(run, cancel.seq),
            Command::StartTimer(timer) => {
                run.timers.insert(timer.seq);
            }
            Command::CancelTimer(timer) => run.cancel_timer(timer.seq),
            Command::CompleteWorkflowExecution(completed) => {
                run.close(RunStatus::Completed);
                self.closed(number, completed.result);
            }
            Command::FailWorkflowExecution(_) => {
                run.close(RunStatus::Failed);
                self.closed(number, None);
            }
            Command::CancelWorkflowExecution(_) => {
                run.close(RunStatus::Cancelled);
                self.closed(number, None);
            }
            Command::ContinueAsNewWorkflowExecution(new) => {
                run.close(RunStatus::ContinuedAsNew);
                let input = new.arguments.into_iter().next().unwrap_or_default();
                let id = run.workflow_id.clone();
                let new_run = Run::new(next, &id, Some(run), input, now_ms).follows(run);
                self.add(new_run);
                self.closed(number, None);
            }
            Command::StartChildWorkflowExecution(start) => self.start_child(number, start),
            Command::CancelChildWorkflowExecution(cancel) => {
                self.cancel_child(number, cancel.child_workflow_seq);
            }
            // Neither changes what the run waits for.
            Command::UpsertWorkflowSearchAttributes(_)
            | Command::ScheduleLocalActivity(_)
            | Command::RequestCancelLocalActivity(_)
            | Command::ModifyWorkflowProperties(_)
            | Command::SetPatchMarker(_)
            | Command::UpdateResponse(_)
            | Command::RespondToQuery(_) => {}
            other => self.unknown_commands.push(format!("{other:?}")),
        }
    }
}

/// Asks an activity to end. An activity without an attempt ends at once.
fn cancel_activity(run: &mut Run, seq: u32) {
    let Some(activity) = run.activities.get_mut(&seq) else {
        return;
    };
    activity.is_cancel_requested = true;
    if activity.state == ActivityState::Scheduled {
        run.resolve_activity(seq, ActivityEnd::Cancelled);
    }
}
