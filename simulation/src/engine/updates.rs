//! Updates of workflows: requests with an answer. A refused update leaves no trace in the history, as in the engine.

use temporalio_common::protos::{
    coresdk::{
        workflow_activation::{DoUpdate, workflow_activation_job::Variant as Job},
        workflow_commands::{
            UpdateResponse, update_response::Response, workflow_command::Variant as Command,
        },
    },
    temporal::api::{common::v1::Payload, failure::v1::Failure},
};

use super::{CommittedTask, Engine, Run, RunNumber, RunStatus};

/// How an update stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// No workflow task has taken the update.
    Admitted,
    /// The handler runs.
    Accepted,
    /// The handler has ended without a failure.
    Completed,
    /// The validator or the handler has refused the update, with this message.
    Refused(String),
    /// The run has ended without taking the update.
    NotFound,
}

impl Engine {
    /// Sends an update to the running workflow. A known id changes nothing. Returns the run; `None` without a running
    /// workflow.
    pub fn update(
        &mut self,
        workflow_id: &str,
        update_id: &str,
        name: &str,
        input: Payload,
    ) -> Option<RunNumber> {
        let number = self.running(workflow_id)?;
        let run = self.run_mut(number)?;
        if !run.updates.contains_key(update_id) {
            run.updates.insert(update_id.to_owned(), Update::Admitted);
            run.news.push(Job::DoUpdate(DoUpdate {
                id: update_id.to_owned(),
                protocol_instance_id: update_id.to_owned(),
                name: name.to_owned(),
                input: vec![input],
                run_validator: true,
                ..DoUpdate::default()
            }));
        }
        Some(number)
    }

    /// Returns how an update of a run stands.
    pub fn update_of(&self, number: RunNumber, update_id: &str) -> Update {
        let run = self.run(number);
        let known = run.and_then(|run| Some((run.status, run.updates.get(update_id)?)));
        match known {
            Some((RunStatus::Running, update)) => update.clone(),
            None | Some((_, Update::Admitted)) => Update::NotFound,
            Some((_, Update::Accepted)) => Update::Refused("the run has ended".to_owned()),
            Some((_, ended)) => ended.clone(),
        }
    }
}

impl Run {
    /// Takes the answers to updates out of a completed task. The history keeps the accepted updates, which no replay
    /// checks again.
    pub(super) fn take_responses(&mut self, task: &mut CommittedTask) {
        let mut refused = Vec::new();
        for command in &task.commands {
            if let Some(Command::UpdateResponse(response)) = &command.variant {
                self.take_response(response, &mut refused);
            }
        }
        let is_refused = |id: &str| refused.iter().any(|refused| refused == id);
        task.commands.retain(|command| match &command.variant {
            Some(Command::UpdateResponse(response)) => !is_refused(&response.protocol_instance_id),
            _ => true,
        });
        for activation in &mut task.activations {
            activation.jobs.retain_mut(|job| match &mut job.variant {
                Some(Job::DoUpdate(update)) => {
                    update.run_validator = false;
                    !is_refused(&update.protocol_instance_id)
                }
                _ => true,
            });
        }
    }

    fn take_response(&mut self, response: &UpdateResponse, refused: &mut Vec<String>) {
        let id = &response.protocol_instance_id;
        let Some(update) = self.updates.get_mut(id) else {
            return;
        };
        match &response.response {
            Some(Response::Accepted(())) => *update = Update::Accepted,
            Some(Response::Completed(_)) => *update = Update::Completed,
            Some(Response::Rejected(failure)) => {
                if *update == Update::Admitted {
                    refused.push(id.clone());
                }
                *update = Update::Refused(text_of(failure));
            }
            None => {}
        }
    }
}

/// Returns the message of the innermost cause.
fn text_of(failure: &Failure) -> String {
    match &failure.cause {
        Some(cause) => text_of(cause),
        None => failure.message.clone(),
    }
}
