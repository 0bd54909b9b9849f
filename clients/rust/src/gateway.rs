//! Requests to a gateway. Every request may be sent again, so a client need not know whether the first try arrived.

use std::time::Duration;

use reqwest::{Response, header};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    error::{ClientError, Problem},
    words::OnBusy,
};

/// How often a request is sent while the gateway answers 503. A restarting worker, store or Temporal server is ready by
/// then.
const ATTEMPTS: u32 = 30;

/// The pause between two tries, unless the gateway sets a pause; and the longest pause that the gateway may set.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a gateway may be silent: several times the interval between two keep-alives of a stream.
const SILENCE: Duration = Duration::from_mins(2);

/// A gateway at a URL. Clones share connections.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    url: String,
    http: reqwest::Client,
    fixed_retry: Option<Duration>,
    model: Option<String>,
}

impl GatewayClient {
    /// Returns a client of the gateway at `url`, without a credential.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_token(url, None)
    }

    /// Returns a client that sends the given key or token with every request.
    pub fn with_token(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        let is_http = url
            .parse::<reqwest::Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            return Err(ClientError::Url(url.to_owned()));
        }
        let mut headers = header::HeaderMap::new();
        if let Some(token) = token {
            let value = header::HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| ClientError::Token)?;
            // A sensitive header stays out of logs.
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let url = format!("{}/api/v1/agent", url.trim_end_matches('/'));
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE)
            .default_headers(headers)
            .build();
        let http = http.map_err(|source| ClientError::Unreachable {
            url: url.clone(),
            source,
        })?;
        Ok(Self {
            url,
            http,
            fixed_retry: None,
            model: None,
        })
    }

    /// Sets a fixed pause before reopening a stream. Otherwise the gateway sets the pause, and spreads its readers over
    /// some seconds.
    #[must_use]
    pub fn retrying_every(self, pause: Duration) -> Self {
        Self {
            fixed_retry: Some(pause),
            ..self
        }
    }

    /// Chooses the model of each message that the client sends, `provider/model`, among the models of the agent.
    #[must_use]
    pub fn choosing_model(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    /// Creates a conversation and returns its id.
    pub async fn create_conversation(&self, agent: Option<&str>) -> Result<String, ClientError> {
        // With an id of its own, a repeated request creates no second conversation.
        let mut body = json!({ "id": Uuid::now_v7().to_string() });
        if let Some(agent) = agent {
            body["agent"] = agent.into();
        }
        text_of(&self.post("/conversations", &body).await?, "id")
    }

    /// Submits a message and returns its id. A repeated call with the same `message_id` returns the first answer.
    /// Without a `message_id`, the client makes an id.
    pub async fn submit(
        &self,
        conversation_id: &str,
        content: &str,
        message_id: Option<&str>,
    ) -> Result<String, ClientError> {
        let body = json!({ "content": content });
        self.submit_body(conversation_id, body, message_id).await
    }

    /// Submits a message as [`Self::submit`] does, and creates a missing conversation in the same request. `agent` has
    /// no effect on an existing conversation.
    pub async fn submit_first(
        &self,
        conversation_id: &str,
        agent: Option<&str>,
        content: &str,
        message_id: Option<&str>,
    ) -> Result<String, ClientError> {
        let create = agent.map_or_else(|| json!({}), |agent| json!({ "agent": agent }));
        let body = json!({ "content": content, "create": create });
        self.submit_body(conversation_id, body, message_id).await
    }

    async fn submit_body(
        &self,
        conversation_id: &str,
        mut body: Value,
        message_id: Option<&str>,
    ) -> Result<String, ClientError> {
        let path = format!("/conversations/{conversation_id}/messages");
        let message_id = message_id.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        body["message_id"] = message_id.into();
        self.choose_model(&mut body);
        text_of(&self.post(&path, &body).await?, "message_id")
    }

    /// Asks the conversation's running turn to end, whichever turn runs when the gateway gets the request. A client that
    /// knows the turn calls [`Self::cancel_message`].
    pub async fn cancel(&self, conversation_id: &str) -> Result<(), ClientError> {
        let path = format!("/conversations/{conversation_id}/cancel");
        self.post(&path, &json!({})).await.map(drop)
    }

    /// Asks the turn of a message to end, and no other turn. A repeated or late call never ends the next turn.
    pub async fn cancel_message(
        &self,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<(), ClientError> {
        let path = format!("/conversations/{conversation_id}/cancel");
        let body = json!({"message_id": message_id});
        self.post(&path, &body).await.map(drop)
    }

    /// Retries the conversation's newest turn, which has failed, and returns the message id of the retry. The retry goes
    /// on from the last checkpoint of the failed turn.
    pub async fn retry(&self, conversation_id: &str) -> Result<String, ClientError> {
        let path = format!("/conversations/{conversation_id}/retry");
        text_of(&self.post(&path, &json!({})).await?, "message_id")
    }

    /// Answers an approval.
    pub async fn resolve_approval(
        &self,
        conversation_id: &str,
        execution_id: &str,
        answer: &(impl Serialize + Sync),
    ) -> Result<(), ClientError> {
        let path = format!("/conversations/{conversation_id}/approvals/{execution_id}");
        self.post(&path, answer).await.map(drop)
    }

    /// Settles the outcome of a call with an unknown outcome. `settled` has the fields of `docs/api/tool-calls.md`.
    pub async fn settle_outcome(
        &self,
        conversation_id: &str,
        execution_id: &str,
        settled: &(impl Serialize + Sync),
    ) -> Result<(), ClientError> {
        let path = format!("/conversations/{conversation_id}/tool-calls/{execution_id}/outcome");
        self.post(&path, settled).await.map(drop)
    }

    /// Returns the conversation's largest sequence number.
    pub async fn last_sequence(&self, conversation_id: &str) -> Result<u32, ClientError> {
        let status = self.execution_status(conversation_id).await?;
        let last = status["last_sequence"].as_u64();
        last.and_then(|last| u32::try_from(last).ok())
            .ok_or(ClientError::Unexpected("last_sequence"))
    }

    /// Returns the conversation's status: whether a turn runs, and the call that waits for its provider.
    pub async fn execution_status(&self, conversation_id: &str) -> Result<Value, ClientError> {
        let path = format!("/conversations/{conversation_id}/execution-status");
        self.get(&path, &[]).await
    }

    /// Submits a message as [`GatewayClient::submit`] does. `on_busy` decides what happens while a turn is running. For
    /// a repetition, give the same `message_id`: the message is stored once.
    pub async fn send(
        &self,
        conversation_id: &str,
        content: &str,
        message_id: &str,
        on_busy: &OnBusy,
    ) -> Result<String, ClientError> {
        let path = format!("/conversations/{conversation_id}/messages");
        let mut body = json!({ "content": content, "message_id": message_id, "on_busy": on_busy });
        self.choose_model(&mut body);
        text_of(&self.post(&path, &body).await?, "message_id")
    }

    /// Adds the chosen model to the body of a message.
    fn choose_model(&self, body: &mut Value) {
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
    }

    /// Answers a call of a client tool.
    pub async fn answer_client_tool(
        &self,
        conversation_id: &str,
        execution_id: &str,
        result: &Value,
        is_error: bool,
    ) -> Result<(), ClientError> {
        let path = format!("/conversations/{conversation_id}/client-tools/{execution_id}");
        let body = json!({ "result": result, "is_error": is_error });
        self.post(&path, &body).await.map(drop)
    }

    /// Returns the fixed pause before reopening a stream, if set.
    pub(crate) fn fixed_retry(&self) -> Option<Duration> {
        self.fixed_retry
    }

    /// Returns the URL of a path of the API.
    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Opens a stream.
    pub(crate) async fn open(&self, url: &str) -> reqwest::Result<reqwest::Response> {
        self.http.get(url).send().await
    }

    /// Reads an answer.
    pub(crate) async fn get(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Value, ClientError> {
        let url = format!("{}{path}", self.url);
        let parsed = reqwest::Url::parse_with_params(&url, query);
        let parsed = parsed.map_err(|_| ClientError::Url(url))?;
        let answer = self.sent(self.http.get(parsed)).await?;
        json_of(checked(answer).await?).await
    }

    /// Sends a repeatable request, again and again while the gateway answers "not now" (503).
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<Value, ClientError> {
        let url = format!("{}{path}", self.url);
        let mut attempts_left = ATTEMPTS;
        loop {
            attempts_left -= 1;
            let response = self.sent(self.http.post(&url).json(body)).await?;
            match checked(response).await {
                Ok(response) => return json_of(response).await,
                Err(problem) if problem.status == 503 && attempts_left > 0 => {
                    let pause = problem.retry_after.unwrap_or(PAUSE).min(MAX_PAUSE);
                    tracing::debug!(%problem, ?pause, "the gateway cannot serve now; trying again");
                    tokio::time::sleep(pause).await;
                }
                Err(problem) => return Err(problem.into()),
            }
        }
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Result<Response, ClientError> {
        let sent = request.send().await;
        sent.map_err(|source| ClientError::Unreachable {
            url: self.url.clone(),
            source,
        })
    }
}

async fn checked(response: Response) -> Result<Response, Box<Problem>> {
    if response.status().is_success() {
        Ok(response)
    } else {
        Err(Problem::of(response).await)
    }
}

async fn json_of(response: Response) -> Result<Value, ClientError> {
    let read = response.json().await;
    read.map_err(|_| ClientError::Unexpected("JSON"))
}

fn text_of(answer: &Value, field: &'static str) -> Result<String, ClientError> {
    let text = answer[field].as_str().map(str::to_owned);
    text.ok_or(ClientError::Unexpected(field))
}
