//! A small client of the gateway: what `dev --once` and `chat` need, and an example for one's own.

use std::time::Duration;

use anyhow::{Context, bail};
use eventsource_stream::Eventsource;
use everturn_proto::ids;
use futures::{Stream, StreamExt, stream::BoxStream};
use serde_json::{Value, json};

/// A gateway at a URL.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    url: String,
    http: reqwest::Client,
}

/// A frame of an event stream.
#[derive(Debug, Clone)]
pub struct Frame {
    /// `event:`, the type.
    pub event: String,
    /// The sequence number of a persisted event; deltas have none.
    pub id: Option<u32>,
    /// `data:`.
    pub data: Value,
}

impl Frame {
    /// True for what the turn's own agent does, and false for what a sub-agent of it does.
    pub fn is_own(&self) -> bool {
        let text = |key: &str| self.data[key].as_str().unwrap_or_default();
        let execution = text("agent_execution_id");
        execution.is_empty() || execution == ids::root_execution_id(text("conversation_id"), text("message_id"))
    }
}

impl GatewayClient {
    /// A client of the gateway at `url`.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let is_http = url.parse::<url::Url>().is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            bail!("`{url}` is not the URL of a gateway; it looks like http://127.0.0.1:8080");
        }
        let http = reqwest::Client::builder().connect_timeout(Duration::from_secs(5)).build()?;
        Ok(Self { url: format!("{}/api/v1/agent", url.trim_end_matches('/')), http })
    }

    /// Creates a conversation and returns its id.
    pub async fn create_conversation(&self, agent: Option<&str>) -> anyhow::Result<String> {
        let created = self.post("/conversations", &agent.map_or(json!({}), |agent| json!({ "agent": agent }))).await?;
        created["id"].as_str().map(str::to_owned).context("the gateway's answer has no id")
    }

    /// Submits a message and returns its id. `message_id` makes a repeated call return the first one's answer.
    pub async fn submit(
        &self,
        conversation_id: &str,
        content: &str,
        message_id: Option<&str>,
    ) -> anyhow::Result<String> {
        let path = format!("/conversations/{conversation_id}/messages");
        let mut body = json!({ "content": content });
        if let Some(message_id) = message_id {
            body["message_id"] = message_id.into();
        }
        let accepted = self.post(&path, &body).await?;
        accepted["message_id"].as_str().map(str::to_owned).context("the gateway's answer has no message_id")
    }

    /// Asks the running turn of the conversation to end.
    pub async fn cancel(&self, conversation_id: &str) -> anyhow::Result<()> {
        self.post(&format!("/conversations/{conversation_id}/cancel"), &json!({})).await.map(drop)
    }

    /// The conversation's largest sequence number.
    pub async fn last_sequence(&self, conversation_id: &str) -> anyhow::Result<u32> {
        let url = format!("{}/conversations/{conversation_id}/execution-status", self.url);
        let status: Value = checked(self.http.get(url).send().await?).await?.json().await?;
        Ok(status["last_sequence"].as_u64().and_then(|last| u32::try_from(last).ok()).unwrap_or(0))
    }

    /// Follows the conversation from behind `cursor`, coming back with the cursor whenever the stream breaks.
    pub fn follow(&self, conversation_id: &str, cursor: u32) -> impl Stream<Item = Frame> + use<> {
        let client = self.clone();
        let url = format!("{}/conversations/{conversation_id}/events/stream", self.url);
        let state = (client, url, cursor, None::<BoxStream<'static, Frame>>);
        futures::stream::unfold(state, |(client, url, mut cursor, mut frames)| async move {
            loop {
                let mut open = match frames.take() {
                    Some(open) => open,
                    None => match client.connect(&url, cursor).await {
                        Ok(open) => open,
                        Err(error) => {
                            tracing::debug!(%error, "the event stream is not available; trying again");
                            tokio::time::sleep(Duration::from_millis(500)).await;
                            continue;
                        }
                    },
                };
                if let Some(frame) = open.next().await {
                    cursor = frame.id.unwrap_or(cursor);
                    return Some((frame, (client, url, cursor, Some(open))));
                }
            }
        })
    }

    async fn connect(&self, url: &str, cursor: u32) -> anyhow::Result<BoxStream<'static, Frame>> {
        let response = self.http.get(format!("{url}?cursor={cursor}")).send().await?;
        let frames = checked(response).await?.bytes_stream().eventsource();
        // A broken stream ends here; the follower comes back with its cursor.
        let frames = frames.take_while(|frame| futures::future::ready(frame.is_ok())).filter_map(|frame| async {
            let frame = frame.ok()?;
            let data: Value = serde_json::from_str(&frame.data).ok()?;
            // Not the frame's id: by the SSE standard that stays in force for the frames without one behind it.
            let id = data["sequence_number"].as_u64().and_then(|id| u32::try_from(id).ok());
            Some(Frame { event: frame.event, id, data })
        });
        Ok(frames.boxed())
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let response = self.http.post(format!("{}{path}", self.url)).json(body).send().await;
        let response = response.with_context(|| format!("cannot reach the gateway at {}", self.url))?;
        Ok(checked(response).await?.json().await?)
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
    bail!("the gateway answered {status}: {} {} ({})", said("title"), said("detail"), said("code"))
}
