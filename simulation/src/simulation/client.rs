//! The client and the operator: their requests, and the checks of what the client was promised.

use everturn_proto::{Json, ids};
use everturn_store::{Access, Conversations, EventLog, EventReader, PageLimit, Reconciliation};
use serde_json::{Value, json};

use super::{GATEWAYS, Simulation};
use crate::{gateway::post, schedule::Owner, seed::Choices, world::World};

/// The conversation of a simulation.
const CONVERSATION: &str = "c";
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
            Act::Resume => self.resume().await,
            Act::Terminate => {
                self.world.facts().promises.is_terminated();
                self.world
                    .engine()
                    .terminate(&ids::workflow_id(CONVERSATION));
            }
            Act::CancelWorkflow => {
                self.world.facts().promises.is_disturbed();
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
                match post(&gateway, &path, &body).await {
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
        let text = |key: &str, or: &str| body[key].as_str().unwrap_or(or).to_owned();
        let (key, on_busy) = (text("message_id", ""), text("on_busy", "queue"));
        let mut facts = self.world.facts();
        facts.promises.is_sent(&key, &on_busy, &text("content", ""));
        drop(facts);
        self.request(
            number,
            label,
            "messages",
            body,
            move |world, status, answer| {
                let mut facts = world.facts();
                if status == 202
                    && let Some(id) = answer["message_id"].as_str()
                {
                    facts.promises.is_accepted(&key, id);
                    if !facts.accepted.iter().any(|known| known == id) {
                        facts.accepted.push(id.to_owned());
                    }
                }
            },
        )
        .await;
    }

    async fn cancel(&self, number: usize, message_id: String) {
        let body = json!({"message_id": message_id});
        let label = format!("cancel {message_id}");
        self.world.facts().promises.cancel_is_asked(&message_id);
        self.request(number, label, "cancel", body, move |world, _, answer| {
            if answer["status"] == "not_running" {
                world.facts().promises.cancel_is_needless(&message_id);
            }
            if answer["status"] == "cancelling" {
                world
                    .schedule
                    .tell(format!("the cancel of {message_id} is answered"));
                let mut facts = world.facts();
                facts.promises.cancel_is_accepted(&message_id);
                facts.cancelled.insert(message_id);
            }
        })
        .await;
    }

    /// Asks a gateway to go on with whatever is left, as the reconciler does.
    pub(super) async fn resume(&mut self) {
        let (is_done, is_resuming) = (self.is_done.clone(), self.is_resuming.clone());
        is_done.set(false);
        is_resuming.set(true);
        let body = json!({});
        self.request(
            0,
            "resume".to_owned(),
            "resume",
            body,
            move |_, status, _| {
                is_resuming.set(false);
                // Nothing has begun, or everything has ended.
                is_done.set(status == 404 || status == 409);
            },
        )
        .await;
    }

    /// Checks a moment in which nothing can happen.
    pub(super) async fn check_quiet(&self) -> anyhow::Result<()> {
        let id = Access::tenant("default").id_of(CONVERSATION);
        let left = self.world.store.unfinished(&id).await?;
        let left = left.map_or_else(Vec::new, |left| {
            let turn = left.turn.map(|turn| turn.message_id);
            let waiting = left.waiting.into_iter().map(|waiting| waiting.id);
            turn.into_iter().chain(waiting).collect()
        });
        let left = left.iter().map(String::as_str);
        self.world.facts().promises.is_quiet(left);
        Ok(())
    }

    /// Checks the end: every accepted message has one end, and nothing waits.
    pub(super) async fn check_end(&self) -> anyhow::Result<()> {
        if !self.world.facts().violations.is_empty() {
            return Ok(());
        }
        let access = Access::tenant("default");
        let store = &self.world.store;
        let Some(conversation) = store.conversation(&access, CONVERSATION).await? else {
            return Ok(());
        };
        let everything = PageLimit {
            rows: 10_000,
            bytes: u32::MAX,
        };
        let log: EventLog = conversation.log();
        let events = store.events(&access, &log, 0, everything).await?.events;
        self.world.facts().promises.check_log(&events);
        let mut violations = Vec::new();
        for message_id in &self.world.facts().accepted {
            let of_turn = events
                .iter()
                .filter(|event| event.message_id == *message_id);
            let ends = of_turn.filter(|event| {
                matches!(
                    event.event_type.as_str(),
                    "complete" | "cancelled" | "error"
                )
            });
            let ends = ends.count();
            let has_joined = events.iter().any(|event| {
                let data = event.event_data.as_ref().map(Json::to_value);
                event.event_type == "user_message"
                    && data.is_some_and(|data| data["message_id"] == message_id.as_str())
            });
            if ends > 1 || (ends == 0 && !has_joined) {
                violations.push(format!("{message_id} has {ends} ends"));
            }
        }
        self.world.facts().violations.append(&mut violations);
        Ok(())
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
