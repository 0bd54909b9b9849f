//! The client and the operator: their requests, and what the client was promised.

use axum::http::Method;
use everturn_proto::ids;
use serde_json::{Value, json};

use super::{GATEWAYS, Simulation};
use crate::{gateway::ask, schedule::Owner, seed::Choices, world::World};

/// The name of the conversation of a simulation.
pub(super) const CONVERSATION: &str = "c";
/// The most requests of the client.
const MAX_REQUESTS: usize = 9;

/// How often the operator also terminates the workflow of the next request, in 100 times.
const TERMINATES_AGAIN: usize = 40;

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
    /// The operator resets the workflow to one of its tasks.
    Reset,
    /// Removes the conversation. A later message makes the conversation anew.
    Remove,
}

impl Simulation {
    pub(super) async fn act(&mut self) {
        let Some(act) = self.acts.pop() else { return };
        self.tell(format!("the client: {act:?}"));
        let number = self.world.choices().below(GATEWAYS);
        match act {
            Act::Send(on_busy) => {
                self.messages += 1;
                self.on_busy = on_busy;
                self.send(number, self.messages, on_busy).await;
            }
            // The repetition of a message with `reject` may be answered with 202 before an earlier request withdraws the
            // message, so the client does not repeat the message.
            Act::SendAgain if self.messages == 0 || self.on_busy == "reject" => {}
            Act::SendAgain => self.send(number, self.messages, self.on_busy).await,
            Act::Cancel => {
                let accepted: Vec<_> = self.world.facts().accepted.clone();
                let chosen = self.world.choices().one_of(accepted);
                if let Some(message_id) = chosen {
                    self.cancel(number, message_id).await;
                }
            }
            Act::Resume => self.resume(number).await,
            Act::Terminate => {
                self.world.facts().promises.is_terminated();
                let id = ids::workflow_id(CONVERSATION);
                self.world.engine().terminate(&id);
                // The operator terminates the next workflow, too, beside the next request.
                if let Some(next) = self.acts.pop() {
                    let again = self.world.choices().percent(TERMINATES_AGAIN);
                    self.acts.extend(again.then_some(Act::Terminate));
                    self.acts.push(next);
                }
            }
            Act::CancelWorkflow => {
                self.world.facts().promises.is_disturbed();
                self.world.engine().cancel(&ids::workflow_id(CONVERSATION));
            }
            Act::Reset => self.reset(),
            Act::Remove => self.remove(number).await,
        }
    }

    /// The operator resets the newest run to one of its workflow tasks.
    fn reset(&self) {
        let id = ids::workflow_id(CONVERSATION);
        let newest = self.world.engine().newest_run(&id);
        if let Some((run, tasks)) = newest {
            // The abandoned task may have begun the turn of another message, which waits for a reconciler.
            self.world.facts().promises.is_disturbed();
            let task = self.world.choices().below(tasks);
            self.tell(format!("the operator: resets run {run} to task {task}"));
            self.world.engine().reset(run, task);
        }
    }

    /// A client removes the conversation. The answer ends the promises about the conversation.
    async fn remove(&self, number: usize) {
        let label = "remove".to_owned();
        let path = (Method::DELETE, "");
        self.request(number, label, path, json!({}), |world, status, _| {
            if status == 204 {
                world.schedule.tell("the conversation is removed");
                world.facts().conversation_is_removed();
                world.people().forget();
            }
        })
        .await;
    }

    async fn request(
        &self,
        number: usize,
        label: String,
        (method, path): (Method, &'static str),
        body: Value,
        answered: impl FnOnce(&World, u16, &Value) + 'static,
    ) {
        let Some(gateway) = self.gateways.get(number).cloned() else {
            return;
        };
        let world = self.world.clone();
        let name = format!("gateway {number}, {label}");
        let work = async move {
            let path = format!("/conversations/{CONVERSATION}{path}");
            // A client repeats a request without an answer.
            for _try in 0..3 {
                match ask(&gateway, method.clone(), &path, &body).await {
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

    async fn send(&self, number: usize, message: usize, on_busy: &str) {
        let key = format!("key-{message}");
        let body = json!({
            "content": format!("message {message}"), "message_id": key, "on_busy": on_busy, "create": {},
        });
        let label = format!("message {} ({})", body["message_id"], body["on_busy"]);
        let path = (Method::POST, "/messages");
        let removals = self.world.facts().removals;
        self.world.facts().promises.is_sent(&key, on_busy);
        self.request(number, label, path, body, move |world, status, answer| {
            let mut facts = world.facts();
            if status == 202
                && facts.removals == removals
                && let Some(id) = answer["message_id"].as_str()
            {
                facts.promises.is_accepted(&key, id);
                if !facts.accepted.iter().any(|known| known == id) {
                    facts.accepted.push(id.to_owned());
                }
            }
        })
        .await;
    }

    async fn cancel(&self, number: usize, message_id: String) {
        let body = json!({"message_id": message_id});
        let label = format!("cancel {message_id}");
        let path = (Method::POST, "/cancel");
        let removals = self.world.facts().removals;
        self.world.facts().promises.cancel_is_asked(&message_id);
        self.request(number, label, path, body, move |world, _, answer| {
            let mut facts = world.facts();
            if facts.removals != removals {
                return;
            }
            if answer["status"] == "not_running" {
                facts.promises.cancel_is_needless(&message_id);
            }
            if answer["status"] == "cancelling" {
                world
                    .schedule
                    .tell(format!("the cancel of {message_id} is answered"));
                facts.promises.cancel_is_accepted(&message_id);
                facts.cancelled.insert(message_id);
            }
        })
        .await;
    }

    /// A client asks a gateway to go on with whatever is left.
    async fn resume(&self, number: usize) {
        let label = "resume".to_owned();
        let path = (Method::POST, "/resume");
        self.request(number, label, path, json!({}), |_, _, _| ())
            .await;
    }
}

/// The client's requests and the operator's acts, in reverse order.
pub(super) fn acts(choices: &mut Choices) -> Vec<Act> {
    let number = 2 + choices.below(MAX_REQUESTS - 1);
    let mut acts: Vec<_> = (1..number)
        .map(|_| match choices.below(18) {
            14..=15 => Act::Reset,
            16 => Act::Remove,
            17 => Act::Send("reject"),
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
