//! Follows a stream of the API across reconnects.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt};

use crate::{
    error,
    frame::Frame,
    gateway::GatewayClient,
    list::{ConversationList, ListedConversation},
    reconnect::{Outcome, RETRY_MS, Step, next_step},
    sse::Parser,
    words::EndReason,
};

/// An update of a followed conversation.
#[derive(Debug, Clone)]
pub enum Update {
    /// A frame.
    Frame(Frame),
    /// The connection is lost. The client reconnects after the given time.
    Waiting(Duration),
    /// The gateway has ended the stream for good, with a reason.
    Ended(EndReason),
    /// The gateway refuses with the given status, and would refuse again.
    Refused(u16),
}

impl GatewayClient {
    /// Follows the conversation after the event `cursor`. A broken stream is reopened with the cursor of the last
    /// frame. A frame `reset` announces: the events from its `from_sequence` on are replaced and sent again. The stream
    /// ends when the gateway ends it for good or refuses, for example because the token has expired.
    pub fn follow(&self, conversation_id: &str, cursor: u32) -> impl Stream<Item = Frame> + use<> {
        let url = self.url_of(&format!("/conversations/{conversation_id}/events/stream"));
        let following = Following::new(self.clone(), url, cursor.to_string());
        futures::stream::unfold(following, |mut following| async move {
            let frame = following.next().await?;
            Some((frame, following))
        })
    }

    /// Follows the conversation as [`GatewayClient::follow`] does, and also reports lost connections and the reason for
    /// the end. `cursor` is the `id` of an event, or its number.
    pub fn watch(&self, conversation_id: &str, cursor: &str) -> impl Stream<Item = Update> + use<> {
        let url = self.url_of(&format!("/conversations/{conversation_id}/events/stream"));
        let following = Following::new(self.clone(), url, Some(cursor.to_owned()));
        futures::stream::unfold(following, |mut following| async move {
            let update = following.next_update().await?;
            Some((update, following))
        })
    }

    /// Follows the list of the caller's conversations. Yields the newest conversations, with the last updated first,
    /// and yields the list again after every change. A broken stream is reopened. Ends as [`GatewayClient::follow`] does.
    pub fn follow_list(&self) -> impl Stream<Item = Vec<ListedConversation>> + use<> {
        let url = self.url_of("/conversation-list/stream");
        let following = Following::new(self.clone(), url, None);
        let known = ConversationList::default();
        futures::stream::unfold(
            (following, known),
            |(mut following, mut known)| async move {
                while let Some(frame) = following.next().await {
                    if known.apply(&frame.data) {
                        return Some((known.conversations(), (following, known)));
                    }
                }
                None
            },
        )
    }
}

type Bytes = Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>;

/// A followed stream of the API: its cursor and its open connection, if any.
struct Following {
    client: GatewayClient,
    url: String,
    /// The cursor; `None` for a stream without a cursor, which begins again with every connection.
    cursor: Option<String>,
    connection: Option<Connection>,
    /// Connections in a row without a frame.
    failures: u32,
    retry_ms: u64,
    /// How long to wait before the next connection.
    wait: Option<Duration>,
    /// The reason in the frame `end`; `None` before the frame.
    reason: Option<EndReason>,
    /// True after the last update.
    is_over: bool,
}

/// An open connection of the stream.
struct Connection {
    bytes: Bytes,
    parser: Parser,
    frames: VecDeque<Frame>,
    /// The connection's outcome if it ends now, as announced by the gateway.
    outcome: Outcome,
}

impl Following {
    fn new(client: GatewayClient, url: String, cursor: impl Into<Option<String>>) -> Self {
        Self {
            client,
            url,
            cursor: cursor.into(),
            connection: None,
            failures: 0,
            retry_ms: RETRY_MS,
            wait: None,
            reason: None,
            is_over: false,
        }
    }

    /// Returns the next frame; `None` when the gateway ends the stream for good or refuses.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            match self.next_update().await? {
                Update::Frame(frame) => return Some(frame),
                Update::Waiting(wait) => {
                    tracing::debug!(?wait, "the event stream was cut; opening the stream again");
                }
                Update::Ended(_) => return None,
                Update::Refused(status) => {
                    tracing::warn!(status, "the gateway refuses the event stream");
                    return None;
                }
            }
        }
    }

    /// Returns the next update; `None` after `Ended` and `Refused`.
    async fn next_update(&mut self) -> Option<Update> {
        if self.is_over {
            return None;
        }
        if let Some(wait) = self.wait.take() {
            tokio::time::sleep(wait).await;
        }
        let outcome = match self.read().await {
            Ok(frame) => return Some(Update::Frame(frame)),
            Err(outcome) => outcome,
        };
        self.connection = None;
        match next_step(&outcome, self.failures, self.retry_ms, random()) {
            Step::Wait(wait) => {
                let wait = self.client.fixed_retry().unwrap_or(wait);
                self.wait = Some(wait);
                Some(Update::Waiting(wait))
            }
            Step::Ended => {
                self.is_over = true;
                let reason = self.reason.take();
                Some(Update::Ended(reason.unwrap_or_else(|| EndReason::from(""))))
            }
            Step::Refused => {
                self.is_over = true;
                let status = match outcome {
                    Outcome::Status { status, .. } => status,
                    Outcome::Cut | Outcome::Reconnect { .. } | Outcome::End => 0,
                };
                Some(Update::Refused(status))
            }
        }
    }

    /// Reads the next frame, and connects first if necessary. The error is the outcome of the connection.
    async fn read(&mut self) -> Result<Frame, Outcome> {
        if self.connection.is_none() {
            // Until the first frame, the connection counts as failed.
            self.failures = self.failures.saturating_add(1);
            let url = match &self.cursor {
                Some(cursor) => format!("{}?cursor={cursor}", self.url),
                None => self.url.clone(),
            };
            self.connection = Some(Connection::open(&self.client, &url).await?);
        }
        loop {
            let connection = self.connection.as_mut().ok_or(Outcome::Cut)?;
            if let Some(frame) = connection.frames.pop_front() {
                self.failures = 0;
                match frame.event.as_str() {
                    "end" => {
                        let reason = frame.data["reason"].as_str();
                        self.reason = Some(reason.unwrap_or_default().into());
                        return Err(Outcome::End);
                    }
                    "reconnect" => {
                        let delay_ms = frame.data["delay_ms"].as_u64();
                        let delay_ms = delay_ms.unwrap_or(self.retry_ms);
                        connection.outcome = Outcome::Reconnect { delay_ms };
                        continue;
                    }
                    "reset" => {
                        let from = frame.data["from_sequence"].as_u64().unwrap_or(1);
                        self.cursor = Some(from.saturating_sub(1).to_string());
                    }
                    _ => {
                        self.cursor = frame.cursor.clone().or_else(|| self.cursor.take());
                    }
                }
                return Ok(frame);
            }
            let read = connection.bytes.next().await;
            let Some(Ok(bytes)) = read else {
                return Err(connection.outcome.clone());
            };
            let messages = connection.parser.take(&bytes).map_err(|error| {
                tracing::warn!(%error, "the event stream cannot be read");
                Outcome::Cut
            })?;
            for message in messages {
                self.retry_ms = message.retry_ms.unwrap_or(self.retry_ms);
                connection.frames.extend(Frame::of(message));
            }
        }
    }
}

impl Connection {
    async fn open(client: &GatewayClient, url: &str) -> Result<Self, Outcome> {
        let response = client.open(url).await.map_err(|error| {
            tracing::debug!(%error, "the gateway cannot be reached");
            Outcome::Cut
        })?;
        let status = response.status().as_u16();
        if status != 200 {
            let retry_after = error::retry_after(&response);
            return Err(Outcome::Status {
                status,
                retry_after,
            });
        }
        let bytes = response.bytes_stream();
        Ok(Self {
            bytes: Box::pin(bytes.map(|read| read.map(|bytes| bytes.to_vec()))),
            parser: Parser::default(),
            frames: VecDeque::new(),
            outcome: Outcome::Cut,
        })
    }
}

/// Returns a random number from 0 to below 1.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}
