//! Clients that create conversations, send messages and read the answers, until the database is gone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_client::GatewayClient;
use everturn_proto::words::EventType;
use everturn_tests::stack::Stack;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::LONG;
use crate::production::restored::Screen;

/// Number of clients at the same time.
const CLIENTS: usize = 6;

/// Number of messages in most conversations.
const MESSAGES: usize = 3;

/// Number of messages in a conversation with long turns.
const LONG_MESSAGES: usize = 2;

/// More messages than there is time for, so that such a conversation loses its last ones only.
const ENDLESS: usize = 1000;

/// A message that the gateway has accepted.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    pub(super) conversation: String,
    /// The client's own id of the message.
    pub(super) client_id: String,
    /// The gateway's.
    pub(super) message_id: String,
}

impl Accepted {
    /// What its client sends, also when it sends it again.
    pub(super) fn body(&self) -> Value {
        body(&self.conversation, &self.client_id)
    }

    pub(super) fn content(&self) -> String {
        content(&self.conversation, &self.client_id)
    }
}

fn content(conversation: &str, client_id: &str) -> String {
    format!("{conversation} {client_id}")
}

fn body(conversation: &str, client_id: &str) -> Value {
    json!({"content": content(conversation, client_id), "message_id": client_id})
}

/// A reader who stays with a conversation, and comes back by itself.
pub(super) struct Reader {
    pub(super) conversation: String,
    pub(super) screen: watch::Receiver<Screen>,
    pub(super) task: JoinHandle<()>,
}

impl Reader {
    pub(super) fn of(client: &GatewayClient, conversation: &str) -> Self {
        let (sender, screen) = watch::channel(Screen::default());
        let mut frames = Box::pin(client.follow(conversation, 0));
        let task = tokio::spawn(async move {
            while let Some(frame) = frames.next().await {
                sender.send_modify(|screen| screen.take(&frame));
            }
        });
        Self {
            conversation: conversation.to_owned(),
            screen,
            task,
        }
    }
}

fn turns_ended(screen: &Screen) -> usize {
    let types = screen
        .events
        .iter()
        .map(|(_, data)| EventType::from(data["type"].as_str().unwrap_or_default()));
    types.filter(EventType::ends_agent_execution).count()
}

/// What all clients together have sent and read.
#[derive(Default)]
struct Shared {
    accepted: Mutex<Vec<Accepted>>,
    readers: Mutex<Vec<Reader>>,
}

/// The clients.
pub(super) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(stack: &Stack) -> Self {
        let shared = Arc::<Shared>::default();
        let clients = (0..CLIENTS).map(|number| {
            let (kind, messages) = match number {
                0..2 => (LONG, LONG_MESSAGES),
                2 => ("endless", ENDLESS),
                _ => ("short", MESSAGES),
            };
            let client = Client {
                gateway: stack.client(),
                url: format!("{}/api/v1/agent", stack.url()),
                http: stack.http.clone(),
                kind,
                messages,
                is_patient: number % 2 == 0,
                shared: Arc::clone(&shared),
            };
            tokio::spawn(client.work())
        });
        Self {
            clients: clients.collect(),
            shared,
        }
    }

    /// Number of conversations so far.
    pub(super) fn conversations(&self) -> usize {
        self.shared.readers.lock().unwrap().len()
    }

    /// Waits until the clients have found that the database is gone. Returns what was accepted, and the readers.
    pub(super) async fn end(self) -> (Vec<Accepted>, Vec<Reader>) {
        for client in self.clients {
            let ended = timeout(Duration::from_mins(1), client).await;
            ended.expect("a client does not end").unwrap();
        }
        let Some(shared) = Arc::into_inner(self.shared) else {
            panic!("a client still works");
        };
        (
            shared.accepted.into_inner().unwrap(),
            shared.readers.into_inner().unwrap(),
        )
    }
}

struct Client {
    gateway: GatewayClient,
    url: String,
    http: reqwest::Client,
    /// The beginning of the names of its conversations.
    kind: &'static str,
    /// Number of messages in each of them.
    messages: usize,
    /// Whether it waits for each answer. Otherwise messages wait.
    is_patient: bool,
    shared: Arc<Shared>,
}

impl Client {
    /// Has one conversation after the other, until a request fails.
    async fn work(self) {
        while let Some(()) = self.converse().await {}
    }

    async fn converse(&self) -> Option<()> {
        let conversation = format!("{}-{}", self.kind, uuid::Uuid::new_v4().simple());
        self.post("/conversations", &json!({"id": conversation}))
            .await?;
        let reader = Reader::of(&self.gateway, &conversation);
        let mut screen = reader.screen.clone();
        self.shared.readers.lock().unwrap().push(reader);
        for number in 0..self.messages {
            let client_id = format!("m{number}");
            let path = format!("/conversations/{conversation}/messages");
            let answer = self.post(&path, &body(&conversation, &client_id)).await?;
            self.shared.accepted.lock().unwrap().push(Accepted {
                conversation: conversation.clone(),
                client_id,
                message_id: answer["message_id"].as_str()?.to_owned(),
            });
            if self.is_patient {
                self.answered(&mut screen, number + 1).await?;
            }
        }
        self.answered(&mut screen, self.messages).await
    }

    /// Waits for so many answers, but not for one that will not come: other requests say whether the database is there.
    async fn answered(&self, screen: &mut watch::Receiver<Screen>, turns: usize) -> Option<()> {
        loop {
            let ended = screen.wait_for(|screen| turns_ended(screen) >= turns);
            if let Ok(ended) = timeout(Duration::from_secs(1), ended).await {
                return ended.ok().map(drop);
            }
            let listed = self.http.get(format!("{}/conversations", self.url));
            listed.send().await.ok()?.error_for_status().ok()?;
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let request = self.http.post(format!("{}{path}", self.url)).json(body);
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        answer.json().await.ok()
    }
}
