//! A server behind a URL over the transport of protocol 2024-11-05: one stream of events for all answers, and an address for
//! the requests, which the server names in the first event.
//!
//! Must not be here: the transport of newer servers (`http.rs`).

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use reqwest::{
    StatusCode,
    header::{ACCEPT, HeaderMap},
};
use rmcp::{
    RoleClient,
    service::TxJsonRpcMessage,
    transport::{
        Transport, common::client_side_sse::BoxedSseResponse,
        streamable_http_client::StreamableHttpError,
    },
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    authorized, events,
    lenient::{self, Message},
    post,
    told::{HttpError, Told},
};

/// The most messages read ahead. Further messages wait in the socket, and make the server wait.
const READ_AHEAD: usize = 4;
/// The time for the event that names the address of requests.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a server is reached.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) client: reqwest::Client,
    /// The server's name in the log.
    pub(super) server: Arc<str>,
    pub(super) headers: HeaderMap,
    /// The secrets of requests, which the server must not repeat.
    pub(super) told: Told,
    /// The most bytes of an event.
    pub(super) max_bytes: usize,
}

/// A connection. Dropping the transport ends the stream.
pub(super) struct SseTransport {
    way: Way,
    endpoint: Url,
    messages: mpsc::Receiver<Message>,
    /// For answers in the bodies of responses. The stream's end ends the connection, so the sender is weak.
    answers: mpsc::WeakSender<Message>,
    stop: CancellationToken,
}

impl SseTransport {
    /// Opens the stream, and reads the address of requests. The address must have the origin of `url`, because requests carry
    /// the operator's secrets.
    pub(super) async fn open(way: Way, url: &str) -> Result<Self, HttpError> {
        let opened = authorized::send(way.told.access.as_deref(), |token| {
            let get = way
                .client
                .get(url)
                .headers(way.headers.clone())
                .header(ACCEPT, "text/event-stream");
            let get = match token {
                Some(token) => get.bearer_auth(token),
                None => get,
            };
            async {
                let response = get.send().await?;
                match response.status() {
                    StatusCode::OK => Ok(response),
                    status => Err(post::refused(status, response, &way.told).await.into()),
                }
            }
        });
        let response = opened.await?;
        let mut events = way.told.cut_stream(events::events(response, way.max_bytes));
        let first = timeout(ENDPOINT_TIMEOUT, endpoint(&mut events)).await;
        let first = first.map_err(|_| unfit("no event names the address of requests"))??;
        let base = Url::parse(url).map_err(|_| unfit("the URL is none"))?;
        let endpoint = base
            .join(&first)
            .ok()
            .filter(|endpoint| endpoint.origin() == base.origin())
            .ok_or_else(|| unfit("the address of requests has another origin"))?;
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        let (answers, stop) = (sender.downgrade(), CancellationToken::new());
        tokio::spawn(read(Arc::clone(&way.server), events, sender, stop.clone()));
        Ok(Self {
            way,
            endpoint,
            messages,
            answers,
            stop,
        })
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        let (way, endpoint) = (self.way.clone(), self.endpoint.clone());
        let answers = self.answers.clone();
        async move {
            let sent = authorized::send(way.told.access.as_deref(), |token| {
                let post = way
                    .client
                    .post(endpoint.clone())
                    .headers(way.headers.clone())
                    .json(&message);
                let post = match token {
                    Some(token) => post.bearer_auth(token),
                    None => post,
                };
                async {
                    let response = post.send().await?;
                    match response.status() {
                        status if status.is_success() => Ok(response),
                        status => Err(post::refused(status, response, &way.told).await.into()),
                    }
                }
            });
            let response = sent.await.map_err(|error| way.told.cut_error(error))?;
            // Some servers answer here, and not on the stream.
            if !post::has_json(&response) {
                return Ok(());
            }
            let body = post::read_body(response, way.max_bytes, &way.told).await;
            let body = body.ok().flatten().unwrap_or_default();
            let reading = lenient::read(&body);
            lenient::warn(&way.server, &reading.flaws);
            if let Some(answers) = answers.upgrade() {
                for answer in reading.messages {
                    let _has_ended = answers.send(answer).await;
                }
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), HttpError> {
        self.stop.cancel();
        Ok(())
    }
}

fn unfit(why: &'static str) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(why.into())
}

/// Waits for the event with the address of requests.
async fn endpoint(events: &mut BoxedSseResponse) -> Result<String, HttpError> {
    while let Some(event) = events.next().await {
        let event = event.map_err(StreamableHttpError::Sse)?;
        if event.event.as_deref() == Some("endpoint") {
            return Ok(event.data.unwrap_or_default());
        }
    }
    Err(StreamableHttpError::UnexpectedEndOfStream)
}

/// Reads messages until the stream ends, or the receiver is gone.
async fn read(
    server: Arc<str>,
    mut events: BoxedSseResponse,
    messages: mpsc::Sender<Message>,
    stop: CancellationToken,
) {
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = stop.cancelled() => return,
        };
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                tracing::warn!(%server, %error, "the events of an MCP server cannot be read");
                return;
            }
            None => return,
        };
        let reading = lenient::read(&event.data.unwrap_or_default());
        lenient::warn(&server, &reading.flaws);
        for message in reading.messages {
            if messages.send(message).await.is_err() {
                return;
            }
        }
    }
}
