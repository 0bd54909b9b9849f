//! A small client of the gateway: what `dev --once` and `chat` need, and an example for one's own.

use std::time::Duration;

use anyhow::{Context, bail};
use eventsource_stream::Eventsource;
use everturn_proto::{ids, words::EventType};
use futures::{Stream, StreamExt, stream::BoxStream};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use uuid::Uuid;

/// The pause before a broken stream is opened again, unless the gateway says otherwise.
const RETRY: Duration = Duration::from_millis(500);
/// How often a request is sent that the gateway answers with 503: a worker, a store or a Temporal server that restarts
/// is ready by then.
const ATTEMPTS: u32 = 30;
/// The pause between two of them, unless the gateway says otherwise; and the longest that it may say.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// A gateway at a URL.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    url: String,
    http: reqwest::Client,
}

/// A frame of an event stream.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its type: of an event, of a text's frame, or `replay`.
    pub event: String,
    /// The sequence number of a persisted event; deltas have none.
    pub id: Option<u32>,
    /// What to come back with behind this event; deltas have none.
    pub cursor: Option<String>,
    /// `data:`.
    pub data: Value,
}

impl Frame {
    /// True for the event that ends the turn of this message.
    pub fn ends_turn(&self, conversation_id: &str, message_id: &str) -> bool {
        let agent_execution_id = self.data["agent_execution_id"].as_str();
        self.event_type()
            .ends_turn(conversation_id, message_id, agent_execution_id)
    }

    /// The type of a persisted event. Frames of texts and of the stream itself are `Unknown`.
    pub fn event_type(&self) -> EventType {
        EventType::from(self.event.as_str())
    }

    /// True for a frame of the turn's own agent, and false for one of a sub-agent.
    pub fn is_own(&self, conversation_id: &str, message_id: &str) -> bool {
        let agent_execution = self.data["agent_execution_id"].as_str();
        agent_execution
            .filter(|id| !id.is_empty())
            .is_none_or(|id| id == ids::root_execution_id(conversation_id, message_id))
    }
}

impl GatewayClient {
    /// A client of the gateway at `url`, without a credential.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        Self::with_token(url, None)
    }

    /// A client that sends this key or token with each request.
    pub fn with_token(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let is_http = url
            .parse::<url::Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            bail!("`{url}` is not the URL of a gateway; it looks like http://127.0.0.1:8080");
        }
        let mut headers = header::HeaderMap::new();
        if let Some(token) = token {
            let value = header::HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.context("the token has characters that no key or token has")?;
            // Keeps it out of what is logged of a request.
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .default_headers(headers);
        let http = http.build()?;
        Ok(Self {
            url: format!("{}/api/v1/agent", url.trim_end_matches('/')),
            http,
        })
    }

    /// Creates a conversation and returns its id.
    pub async fn create_conversation(&self, agent: Option<&str>) -> anyhow::Result<String> {
        // With an id of its own, a request that is sent again creates no second conversation.
        let mut body = json!({ "id": Uuid::now_v7().to_string() });
        if let Some(agent) = agent {
            body["agent"] = agent.into();
        }
        let created = self.post("/conversations", &body).await?;
        created["id"]
            .as_str()
            .map(str::to_owned)
            .context("the gateway's answer has no id")
    }

    /// Submits a message and returns its id. `message_id` makes a repeated call return the first one's answer; without
    /// it the message has an id of its own.
    pub async fn submit(
        &self,
        conversation_id: &str,
        content: &str,
        message_id: Option<&str>,
    ) -> anyhow::Result<String> {
        let path = format!("/conversations/{conversation_id}/messages");
        let message_id = message_id.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let body = json!({ "content": content, "message_id": message_id });
        let accepted = self.post(&path, &body).await?;
        accepted["message_id"]
            .as_str()
            .map(str::to_owned)
            .context("the gateway's answer has no message_id")
    }

    /// Asks the running turn of the conversation to end.
    pub async fn cancel(&self, conversation_id: &str) -> anyhow::Result<()> {
        self.post(
            &format!("/conversations/{conversation_id}/cancel"),
            &json!({}),
        )
        .await
        .map(drop)
    }

    /// Answers an approval.
    pub async fn resolve_approval(
        &self,
        conversation_id: &str,
        execution_id: &str,
        answer: &Value,
    ) -> anyhow::Result<()> {
        let path = format!("/conversations/{conversation_id}/approvals/{execution_id}");
        self.post(&path, answer).await.map(drop)
    }

    /// The conversation's largest sequence number.
    pub async fn last_sequence(&self, conversation_id: &str) -> anyhow::Result<u32> {
        let url = format!(
            "{}/conversations/{conversation_id}/execution-status",
            self.url
        );
        let status: Value = checked(self.http.get(url).send().await?)
            .await?
            .json()
            .await?;
        Ok(status["last_sequence"]
            .as_u64()
            .and_then(|last| u32::try_from(last).ok())
            .unwrap_or(0))
    }

    /// Follows the conversation after the event `cursor`. When the stream breaks, opens it again with the cursor of the
    /// last frame. A frame `reset` says that the events from its `from_sequence` on come anew, as others. Ends when
    /// the gateway says that nothing more comes, or refuses, for example because the token has expired.
    pub fn follow(&self, conversation_id: &str, cursor: u32) -> impl Stream<Item = Frame> + use<> {
        let url = format!("{}/conversations/{conversation_id}/events/stream", self.url);
        let following = Following {
            client: self.clone(),
            url,
            cursor: cursor.to_string(),
            delay: RETRY,
            frames: None,
        };
        futures::stream::unfold(following, |mut following| async move {
            let frame = following.next().await?;
            Some((frame, following))
        })
    }

    async fn connect(&self, url: &str, cursor: &str) -> anyhow::Result<BoxStream<'static, Frame>> {
        let response = self
            .http
            .get(format!("{url}?cursor={cursor}"))
            .send()
            .await?;
        let frames = checked(response).await?.bytes_stream().eventsource();
        // A broken stream ends here, and the follower opens it again with its cursor.
        let frames = frames
            .take_while(|frame| futures::future::ready(frame.is_ok()))
            .filter_map(|frame| async {
                let frame = frame.ok()?;
                let data: Value = serde_json::from_str(&frame.data).ok()?;
                // The type comes from the data: browsers use the name `error` themselves, so the frame of an event
                // `error` has another name.
                let event = data["type"].as_str()?.to_owned();
                // The number comes from the data, too: by the SSE standard, an id also holds for later frames without one.
                let id = data["sequence_number"]
                    .as_u64()
                    .and_then(|id| u32::try_from(id).ok());
                let cursor = id.map(|_| frame.id).filter(|cursor| !cursor.is_empty());
                Some(Frame {
                    event,
                    id,
                    cursor,
                    data,
                })
            });
        Ok(frames.boxed())
    }

    /// Sends a request whose repetition changes nothing, again and again while the gateway answers "not now" (503).
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.url);
        let mut attempts_left = ATTEMPTS;
        loop {
            attempts_left -= 1;
            let response = self.http.post(&url).json(body).send().await;
            let response =
                response.with_context(|| format!("cannot reach the gateway at {}", self.url))?;
            if response.status() != StatusCode::SERVICE_UNAVAILABLE || attempts_left == 0 {
                return Ok(checked(response).await?.json().await?);
            }
            let pause = retry_after(&response).unwrap_or(PAUSE).min(MAX_PAUSE);
            let problem = checked(response).await.map(drop);
            tracing::debug!(
                ?problem,
                ?pause,
                "the gateway cannot serve now; trying again"
            );
            tokio::time::sleep(pause).await;
        }
    }
}

/// What the header `Retry-After` says, in the form with seconds.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// An answer that is a problem.
#[derive(Debug, thiserror::Error)]
#[error("the gateway answered {status}: {said}")]
struct Answered {
    status: StatusCode,
    said: String,
}

impl Answered {
    /// True when the same request would fail later, too.
    fn is_final(&self) -> bool {
        self.status.is_client_error() && self.status != StatusCode::TOO_MANY_REQUESTS
    }
}

/// A place in a conversation, and the connection there, if one is open.
struct Following {
    client: GatewayClient,
    url: String,
    cursor: String,
    /// The pause before the next connection.
    delay: Duration,
    frames: Option<BoxStream<'static, Frame>>,
}

impl Following {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let Some(frames) = &mut self.frames else {
                match self.client.connect(&self.url, &self.cursor).await {
                    Ok(frames) => self.frames = Some(frames),
                    Err(error) if error.downcast_ref().is_some_and(Answered::is_final) => {
                        tracing::warn!(%error, "the event stream has ended");
                        return None;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the event stream is not available; trying again");
                        tokio::time::sleep(RETRY).await;
                    }
                }
                continue;
            };
            let Some(frame) = frames.next().await else {
                self.frames = None;
                tokio::time::sleep(std::mem::replace(&mut self.delay, RETRY)).await;
                continue;
            };
            match frame.event.as_str() {
                "end" if frame.data["reconnect"] == false => return None,
                "reconnect" => {
                    self.delay = frame.data["delay_ms"]
                        .as_u64()
                        .map_or(RETRY, Duration::from_millis);
                }
                _ => {
                    if let Some(cursor) = &frame.cursor {
                        self.cursor.clone_from(cursor);
                    }
                    return Some(frame);
                }
            }
        }
    }
}

/// Turns a problem+json answer into its sentence.
async fn checked(response: reqwest::Response) -> anyhow::Result<reqwest::Response> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let problem: Value = response.json().await.unwrap_or_default();
    let said = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let said = format!("{} {} ({})", said("title"), said("detail"), said("code"));
    Err(Answered { status, said }.into())
}
