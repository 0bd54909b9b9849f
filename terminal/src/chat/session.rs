//! The state of a conversation, its requests, and the calls that wait for a person. The module draws nothing and reads
//! no keys.

use std::{
    collections::HashSet,
    pin::Pin,
    time::{Duration, Instant},
};

use everturn_client::{
    Claim, ClientError, EndReason, Frame, GatewayClient, OnBusy, Update,
    state::{CallState, Conversation, Item, ItemKind, Question as Asked, Status, ToolCall},
};
use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    edited::{Edited, blank, body_of},
    reached::until_reached,
    tools::{Offered, Output},
};

/// The interval of renewals of a call's claim while its tool runs. A claim is valid for 30 seconds.
const CLAIM_AGAIN: Duration = Duration::from_secs(10);

/// The frame about a call that waits for its provider.
pub(super) const MODEL_WAITING: &str = "model_waiting";

/// An event of the session.
#[derive(Debug)]
pub(super) enum Happened {
    /// A frame arrived, and the state contains it.
    Frame(Frame),
    /// The connection is lost. The client reconnects.
    Lost,
    /// The client has reconnected.
    Back,
    /// The stream has ended, with the reason.
    Over(String),
    /// The gateway accepted a message. The field is the message's id at the gateway.
    Accepted(String),
    /// The gateway refused a message. The fields are the message's text and the reason.
    NotAccepted(String, String),
    /// A note for the user.
    Note(String),
}

/// A message that is not in the log yet.
#[derive(Debug, Clone)]
pub(super) struct Unsent {
    /// The idempotency key, identical in every attempt.
    key: String,
    pub(super) content: String,
    /// The message's id at the gateway, after the gateway accepted the message.
    pub(super) message_id: Option<String>,
}

/// The awaited action for a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wants {
    /// A person's approval.
    Approval,
    /// The user's permission to run an offered tool.
    Consent {
        /// True when the call waited before this chat began. Another client may have run the tool already.
        is_old: bool,
    },
    /// A result of a tool that this chat does not offer.
    Result,
    /// The answer to a question of the running tool.
    Answer(Asked),
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) execution_id: String,
    pub(super) tool_name: String,
    pub(super) title: Option<String>,
    pub(super) tool_input: Value,
    /// The input as the store keeps it, character for character. The user is shown the text, which is what runs. For a
    /// question of the tool: the form to fill in.
    pub(super) input_text: String,
    pub(super) wants: Wants,
    input_hash: Option<String>,
}

#[cfg(test)]
impl Question {
    /// A question that no gateway has asked.
    pub(super) fn of_test(execution_id: &str, tool: &str, input: Value, wants: Wants) -> Self {
        Self {
            execution_id: execution_id.to_owned(),
            tool_name: tool.to_owned(),
            title: None,
            input_text: input.to_string(),
            tool_input: input,
            wants,
            input_hash: None,
        }
    }
}

/// An answer to a [`Question`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// The call may run.
    Approve {
        /// The changed input, if the user edited the model's input, as the user wrote the input.
        input: Option<Edited>,
        /// True when later calls of the tool in this conversation may run, too.
        remember: bool,
    },
    /// The fields of the form of a tool's question, as the user wrote the fields.
    Fields(Edited),
    /// The call must not run, or the user declines to answer the tool's question.
    Deny(String),
    /// The offered tool runs.
    Run,
    /// The user's result.
    Result(Value),
}

enum Done {
    Sent {
        key: String,
        answer: Result<String, ClientError>,
    },
    Told(Result<(), ClientError>, &'static str),
    Ran(Question, Output),
    /// Another client runs the call, or ran it.
    Elsewhere(Question),
}

/// A followed conversation.
pub(super) struct Session {
    client: GatewayClient,
    pub(super) conversation_id: String,
    pub(super) state: Conversation,
    updates: Pin<Box<dyn Stream<Item = Update> + Send>>,
    requests: JoinSet<Done>,
    pub(super) unsent: Vec<Unsent>,
    pub(super) is_connected: bool,
    /// The tool calls with an answer from this chat.
    answered: HashSet<String>,
    offered: Vec<Offered>,
    /// The last sequence number before this chat began.
    old_until: u64,
    /// The arrival of the newest news of a call that waits for its provider.
    heard_of_wait: Instant,
}

impl Session {
    /// Follows a conversation from the event after `from`. `last` is the newest event now.
    pub(super) fn new(
        client: GatewayClient,
        conversation_id: String,
        from: u32,
        last: u32,
        offered: Vec<Offered>,
    ) -> Self {
        let cursor = from.to_string();
        Self {
            updates: Box::pin(client.watch(&conversation_id, &cursor)),
            state: Conversation::behind(&cursor),
            client,
            conversation_id,
            requests: JoinSet::new(),
            unsent: Vec::new(),
            is_connected: true,
            answered: HashSet::new(),
            offered,
            old_until: u64::from(last),
            heard_of_wait: Instant::now(),
        }
    }

    /// Waits for the next event of the session. Cancellation of the wait loses no event.
    pub(super) async fn next(&mut self) -> Happened {
        loop {
            let happened = tokio::select! {
                update = self.updates.next() => self.take(update),
                Some(done) = self.requests.join_next() => done.ok().and_then(|done| self.ended(done)),
            };
            if let Some(happened) = happened {
                return happened;
            }
        }
    }

    fn take(&mut self, update: Option<Update>) -> Option<Happened> {
        match update {
            Some(Update::Frame(frame)) => {
                if frame.event == "replay" && !std::mem::replace(&mut self.is_connected, true) {
                    self.state.apply(None, frame.data);
                    return Some(Happened::Back);
                }
                self.state
                    .apply(frame.cursor.as_deref(), frame.data.clone());
                if frame.event == MODEL_WAITING {
                    self.heard_of_wait = Instant::now();
                }
                self.forget_logged();
                Some(Happened::Frame(frame))
            }
            Some(Update::Waiting(_)) => {
                let was_connected = std::mem::replace(&mut self.is_connected, false);
                was_connected.then_some(Happened::Lost)
            }
            Some(Update::Ended(reason)) => Some(Happened::Over(match reason {
                EndReason::ConversationDeleted => "the conversation was deleted".to_owned(),
                EndReason::TokenExpired => {
                    "the key or token is not valid any more: connect again with a new key or token"
                        .to_owned()
                }
                EndReason::Unknown(reason) => format!("the gateway ended the stream: {reason}"),
            })),
            Some(Update::Refused(status)) => Some(Happened::Over(format!(
                "the gateway refuses the stream of events with {status}: the conversation does not exist, or the key \
                 or token is not valid for the conversation"
            ))),
            None => Some(Happened::Over("nothing more comes".to_owned())),
        }
    }

    fn ended(&mut self, done: Done) -> Option<Happened> {
        match done {
            Done::Sent { key, answer } => {
                let at = self.unsent.iter().position(|unsent| unsent.key == key)?;
                match answer {
                    Ok(message_id) => {
                        self.unsent[at].message_id = Some(message_id.clone());
                        self.forget_logged();
                        Some(Happened::Accepted(message_id))
                    }
                    Err(error) => {
                        let unsent = self.unsent.remove(at);
                        let why = format!("{:#}", anyhow::Error::from(error));
                        Some(Happened::NotAccepted(unsent.content, why))
                    }
                }
            }
            // Another device may have answered first. In both cases, the turn continues.
            Done::Told(told, what) => {
                let error = anyhow::Error::from(told.err()?);
                Some(Happened::Note(format!("{what} was not taken: {error:#}")))
            }
            Done::Elsewhere(question) => {
                let tool = question.tool_name;
                Some(Happened::Note(format!("{tool} is run by another client")))
            }
            Done::Ran(question, output) => {
                let note = format!("{} {}", question.tool_name, output.about);
                self.tell_result(&question, output.result, output.is_error);
                Some(Happened::Note(note))
            }
        }
    }

    /// Removes unsent messages that are now in the log.
    fn forget_logged(&mut self) {
        let items = self.state.items();
        let is_logged = |unsent: &Unsent| {
            let id = unsent.message_id.as_deref();
            let of_user = |item: &&Item| matches!(item.kind, ItemKind::UserMessage { .. });
            let mut newest = items.iter().rev().take(1000).filter(of_user);
            id.is_some() && newest.any(|item| Some(item.id.as_str()) == id)
        };
        self.unsent.retain(|unsent| !is_logged(unsent));
    }

    /// Sends a message, and retries until the gateway responds.
    pub(super) fn send(&mut self, content: String, on_busy: OnBusy) {
        let key = Uuid::now_v7().to_string();
        self.unsent.push(Unsent {
            key: key.clone(),
            content: content.clone(),
            message_id: None,
        });
        let (client, conversation) = self.of_request();
        self.requests.spawn(async move {
            let send = || client.send(&conversation, &content, &key, &on_busy);
            let answer = until_reached(send).await;
            Done::Sent { key, answer }
        });
    }

    /// Asks the gateway to retry the newest turn. The gateway knows whether the turn has failed.
    pub(super) fn retry(&mut self) {
        let (client, conversation) = self.of_request();
        self.requests.spawn(async move {
            let told = until_reached(|| client.retry(&conversation)).await;
            Done::Told(told.map(drop), "the retry")
        });
    }

    /// Asks the gateway to cancel the turn that the user sees, so a second request never ends the next turn.
    pub(super) fn cancel(&mut self) {
        let accepted = || {
            self.unsent
                .iter()
                .find_map(|unsent| unsent.message_id.clone())
        };
        let message_id = self.state.turn().map(str::to_owned).or_else(accepted);
        let (client, conversation) = self.of_request();
        self.requests.spawn(async move {
            let cancel = || async {
                match &message_id {
                    Some(message_id) => client.cancel_message(&conversation, message_id).await,
                    None => client.cancel(&conversation).await,
                }
            };
            Done::Told(until_reached(cancel).await, "the cancel")
        });
    }

    /// True while a turn runs, or a message waits for its turn.
    pub(super) fn is_busy(&self) -> bool {
        self.state.status() != Status::Idle || !self.unsent.is_empty()
    }

    /// Returns a sentence about the call that waits for its provider, if any.
    pub(super) fn waiting(&self) -> Option<String> {
        let wait = self.state.waits().last()?;
        let waited = self.heard_of_wait.elapsed().as_millis();
        Some(wait.sentence(u64::try_from(waited).unwrap_or(u64::MAX)))
    }

    /// Returns the calls that wait for a person, the oldest first, without calls that this chat has answered.
    pub(super) fn questions(&self) -> Vec<Question> {
        // Only calls of the running turn can wait.
        if self.state.status() != Status::Waiting {
            return Vec::new();
        }
        let items = self.state.items().iter();
        let questions = items.filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => self.question(call, item.sequence_number),
            _ => None,
        });
        let open = questions.filter(|question| !self.answered.contains(&key_of(question)));
        open.collect()
    }

    fn question(&self, call: &ToolCall, sequence_number: u64) -> Option<Question> {
        let execution_id = call.execution_id.clone()?;
        let approval = call.approval.as_ref();
        let wants = match (call.state, call.has_pending_approval(), &call.client_tool) {
            (CallState::Running, true, _) => match approval.and_then(|it| it.question.clone()) {
                Some(asked) => Wants::Answer(asked),
                None => Wants::Approval,
            },
            (CallState::Running, false, Some(_)) if self.offers(&call.tool_name) => {
                let is_old = sequence_number <= self.old_until;
                Wants::Consent { is_old }
            }
            (CallState::Running, false, Some(_)) => Wants::Result,
            _ => return None,
        };
        Some(Question {
            execution_id,
            tool_name: call.tool_name.clone(),
            title: call.title.clone(),
            tool_input: call.tool_input.clone(),
            input_text: match &wants {
                Wants::Answer(asked) => asked.schema.as_ref().map(blank).unwrap_or_default(),
                _ => approval
                    .and_then(|approval| approval.input_text.clone())
                    .unwrap_or_else(|| call.tool_input.to_string()),
            },
            wants,
            input_hash: approval.and_then(|approval| approval.input_hash.clone()),
        })
    }

    fn offers(&self, tool: &str) -> bool {
        self.offered.iter().any(|offered| offered.name == tool)
    }

    /// Returns the command of an offered tool.
    pub(super) fn command(&self, tool: &str) -> Option<&str> {
        let mut offered = self.offered.iter();
        let found = offered.find(|offered| offered.name == tool)?;
        Some(&found.command)
    }

    /// Answers a question.
    pub(super) fn answer(&mut self, question: &Question, answer: Answer) {
        self.answered.insert(key_of(question));
        let is_for_client = matches!(question.wants, Wants::Consent { .. } | Wants::Result);
        let (mut fields, object) = match answer {
            Answer::Approve { input, remember } => (
                json!({ "decision": "approve", "remember": remember }),
                input.map(|input| ("tool_input", input)),
            ),
            Answer::Fields(answer) => (json!({ "decision": "approve" }), Some(("answer", answer))),
            Answer::Deny(reason) if !is_for_client => {
                (json!({ "decision": "deny", "reason": reason }), None)
            }
            Answer::Deny(reason) => {
                let said = if reason.is_empty() {
                    "the user does not want this".to_owned()
                } else {
                    reason
                };
                return self.tell_result(question, Value::String(said), true);
            }
            Answer::Result(result) => return self.tell_result(question, result, false),
            Answer::Run => return self.run(question),
        };
        fields["input_hash"] = question.input_hash.clone().unwrap_or_default().into();
        let body = body_of(&fields, object);
        let (client, conversation) = self.of_request();
        let execution_id = question.execution_id.clone();
        self.requests.spawn(async move {
            let resolve = || client.resolve_approval(&conversation, &execution_id, &body);
            Done::Told(until_reached(resolve).await, "the answer")
        });
    }

    fn run(&mut self, question: &Question) {
        let mut offered = self.offered.iter();
        let Some(tool) = offered
            .find(|offered| offered.name == question.tool_name)
            .cloned()
        else {
            return;
        };
        let question = question.clone();
        let (client, conversation) = self.of_request();
        self.requests.spawn(async move {
            let call = &question.execution_id;
            let claimant = Uuid::now_v7().to_string();
            let claim = || client.claim_client_tool(&conversation, call, &claimant);
            let may_be_repeated = question.wants == Wants::Consent { is_old: true };
            match until_reached(claim).await {
                Ok(Claim::Run { is_repeated }) if is_repeated && !may_be_repeated => {
                    Done::Ran(question, Output::unknown())
                }
                Ok(Claim::Run { .. }) => {
                    let keep = async {
                        loop {
                            tokio::time::sleep(CLAIM_AGAIN).await;
                            let _lost_only_with_the_gateway = claim().await;
                        }
                    };
                    tokio::select! {
                        output = tool.run(&question.tool_input, call) => Done::Ran(question, output),
                        () = keep => Done::Elsewhere(question),
                    }
                }
                Ok(Claim::Held(_) | Claim::Over) => Done::Elsewhere(question),
                Err(error) => Done::Told(Err(error), "the claim of the call"),
            }
        });
    }

    fn tell_result(&mut self, question: &Question, result: Value, is_error: bool) {
        let (client, conversation) = self.of_request();
        let execution_id = question.execution_id.clone();
        self.requests.spawn(async move {
            let tell =
                || client.answer_client_tool(&conversation, &execution_id, &result, is_error);
            Done::Told(until_reached(tell).await, "the result")
        });
    }

    fn of_request(&self) -> (GatewayClient, String) {
        (self.client.clone(), self.conversation_id.clone())
    }
}

/// Returns the key of a question. A call may have several questions: for an approval, for answers to its tool, and for a
/// result.
fn key_of(question: &Question) -> String {
    let hash = match question.wants {
        Wants::Approval | Wants::Answer(_) => question.input_hash.as_deref(),
        Wants::Consent { .. } | Wants::Result => None,
    };
    format!("{}-{}", question.execution_id, hash.unwrap_or_default())
}
