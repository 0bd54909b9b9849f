//! The client and the operator: their requests, and the checks of what the client was promised.

use everturn_proto::ids;
use serde_json::{Value, json};

use super::{GATEWAYS, Simulation};
use crate::{gateway::post, schedule::Owner, seed::Choices, world::World};

/// The name of the conversation of a simulation.
pub(super) const CONVERSATION: &str = "c";
/// The most requests of the client.
const MAX_REQUESTS: usize = 8;

/// A request of the client, or an act of the operator.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Send(&'static str),
    /// Sends the last message again.
    SendAgain,
    /// Cancels one of the messages.
    Cancel,
    Resume,
    /// The operator terminates the workflow.
    Terminate,
    /// The operator cancels the workflow.
    CancelWorkflow,
}

impl Simulation {
    pub(super) async fn act(&mut self) {
        let Some(act) = self.acts.pop() else { return };
        self.tell(format!("the client: {act:?}"));
        let number = self.world.choices().below(GATEWAYS);
        match act {
            Act::Send(on_busy) => {
                self.messages += 1;
                let key = format!("key-{}", self.messages);
                let body = json!({
                    "content": format!("message {}", self.messages), "message_id": key, "on_busy": on_busy,
                    "create": {},
                });
                self.send(number, body).await;
            }
            Act::SendAgain => {
                let key = format!("key-{}", self.messages);
                let body = json!({
                    "content": format!("message {}", self.messages), "message_id": key, "create": {},
                });
                if self.messages > 0 {
                    self.send(number, body).await;
                }
            }
            Act::Cancel => {
                let accepted: Vec<_> = self.world.facts().accepted.clone();
                let chosen = self.world.choices().one_of(accepted);
                if let Some(message_id) = chosen {
                    self.cancel(number, message_id).await;
                }
            }
            Act::Resume => self.resume(number).await,
            Act::Terminate => {
                let ended = self
                    .world
                    .engine()
                    .terminate(&ids::workflow_id(CONVERSATION));
                self.world.facts().run_is_cut(ended);
            }
            Act::CancelWorkflow => {
                self.world.engine().cancel(&ids::workflow_id(CONVERSATION));
            }
        }
    }

    async fn request(
        &self,
        number: usize,
        label: String,
        path: &'static str,
        body: Value,
        answered: impl FnOnce(&World, u16, &Value) + 'static,
    ) {
        let Some(gateway) = self.gateways.get(number).cloned() else {
            return;
        };
        let world = self.world.clone();
        let name = format!("gateway {number}, {label}");
        let work = async move {
            let path = format!("/conversations/{CONVERSATION}/{path}");
            // A client repeats a request without an answer.
            for _try in 0..3 {
                match post(&gateway.router, &path, &body).await {
                    Ok((503, _)) | Err(_) => world.schedule.step("repeats the request").await,
                    Ok((status, answer)) => {
                        answered(&world, status, &answer);
                        return;
                    }
                }
            }
        };
        let owner = Owner::Gateway(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    async fn send(&self, number: usize, body: Value) {
        let label = format!("message {} ({})", body["message_id"], body["on_busy"]);
        self.request(number, label, "messages", body, |world, status, answer| {
            if status == 202
                && let Some(id) = answer["message_id"].as_str()
                && !world.facts().accepted.iter().any(|known| known == id)
            {
                world.facts().accepted.push(id.to_owned());
            }
        })
        .await;
    }

    async fn cancel(&self, number: usize, message_id: String) {
        let body = json!({"message_id": message_id});
        let label = format!("cancel {message_id}");
        self.request(number, label, "cancel", body, move |world, _, answer| {
            if answer["status"] == "cancelling" {
                world
                    .schedule
                    .tell(format!("the cancel of {message_id} is answered"));
                world.facts().cancelled.insert(message_id);
            }
        })
        .await;
    }

    /// A client asks a gateway to go on with whatever is left.
    async fn resume(&self, number: usize) {
        let label = "resume".to_owned();
        self.request(number, label, "resume", json!({}), |_, _, _| ())
            .await;
    }
}

/// The client's requests and the operator's acts, in reverse order.
pub(super) fn acts(choices: &mut Choices) -> Vec<Act> {
    let number = 2 + choices.below(MAX_REQUESTS - 1);
    let mut acts: Vec<_> = (1..number)
        .map(|_| match choices.below(14) {
            0..=3 => Act::Send("queue"),
            4..=5 => Act::Send("interrupt"),
            6..=7 => Act::Send("steer"),
            8 => Act::SendAgain,
            9..=10 => Act::Cancel,
            11 => Act::Resume,
            12 => Act::Terminate,
            _ => Act::CancelWorkflow,
        })
        .collect();
    acts.push(Act::Send("queue"));
    acts
}
