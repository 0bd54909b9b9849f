//! The requests by HTTP to a server behind a URL, besides `server/discover`.
//!
//! rmcp's POST reads no body of a 404, drops an error with another id, and refuses every answer that is not exact. This POST
//! reads leniently, and tells a refusal by HTTP from an answer.
//!
//! Must not be here: the consequences for the call (`error.rs`), and the events of a stream (`events.rs`).

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use reqwest::{
    Response, StatusCode,
    header::{
        ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
    },
};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId},
    transport::{
        common::{
            client_side_sse::BoxedSseResponse,
            http_header::{
                EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
            },
        },
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::Sse;

use super::{
    events,
    lenient::{self, Message},
    told::{HttpError, Told},
};

/// The most bytes that are read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The most characters of a refusal that the model gets.
const MAX_SAID_CHARS: usize = 300;

/// The end of a request without an answer of the server's program.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("HTTP {status}{}{}", wait_text(*.retry_after), said_text(.said))]
    Refused {
        status: StatusCode,
        /// The server's `Retry-After`.
        retry_after: Option<Duration>,
        said: String,
    },
    /// The server answered, so the tool may have run.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

fn wait_text(retry_after: Option<Duration>) -> String {
    retry_after
        .map(|wait| format!(", to be tried again after {} s", wait.as_secs()))
        .unwrap_or_default()
}

fn said_text(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

impl PostError {
    /// Returns the error in the chain of an error of the HTTP client.
    pub(super) fn of(error: &HttpError) -> Option<&Self> {
        match error {
            StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }
}

impl From<PostError> for HttpError {
    /// Wraps the error, because rmcp only accepts foreign errors as errors of the transport.
    fn from(error: PostError) -> Self {
        Self::Io(io::Error::other(error))
    }
}

/// A message to send, or a stream to open.
pub(super) struct Post<'a> {
    /// The server's name in the log.
    pub(super) server: Arc<str>,
    pub(super) uri: &'a str,
    /// The id of a request; `None` for a notification or an answer.
    pub(super) request: Option<RequestId>,
    pub(super) session_id: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
    /// The most bytes of an answer, or of an event of a stream.
    pub(super) max_bytes: usize,
    /// The secrets of requests, which the server must not repeat.
    pub(super) told: &'a Told,
}

impl Post<'_> {
    /// Sends a message.
    pub(super) async fn send(
        self,
        client: &reqwest::Client,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let post = client.post(self.uri);
        let response = self.with_headers(post).json(message).send().await?;
        let status = response.status();
        match (&self.request, status) {
            // The answer comes on the stream of the session.
            (Some(_), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            (Some(_), status) if status.is_success() => self.answer(response).await,
            // Nobody waits for the server's opinion of a notification.
            (None, status) if status.is_success() => Ok(StreamableHttpPostResponse::Accepted),
            _ => self.refusal(status, response).await,
        }
    }

    /// Opens the stream of events of a session, perhaps after an event of an earlier stream.
    pub(super) async fn listen(
        self,
        client: &reqwest::Client,
        last_event_id: Option<String>,
    ) -> Result<BoxedSseResponse, HttpError> {
        let mut get = client.get(self.uri);
        if let Some(id) = last_event_id {
            get = get.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = self.with_headers(get).send().await?;
        match response.status() {
            status if status.is_success() && has_events(&response) => {
                let events = events::events(response, self.max_bytes);
                Ok(delivered(self.server, None, events))
            }
            // A page for people, for example.
            status if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            status => match challenge_of(status, &response) {
                Some(error) => Err(error),
                None => Err(refused(status, response, self.told).await.into()),
            },
        }
    }

    fn with_headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let accepted = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
        let mut request = request.header(ACCEPT, accepted);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.session_id {
            Some(session_id) => request.header(HEADER_SESSION_ID, &**session_id),
            None => request,
        }
    }

    async fn answer(self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let session = text_of(&response, HEADER_SESSION_ID);
        if has_events(&response) {
            let events = events::events(response, self.max_bytes);
            let events = delivered(self.server, self.request, events);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let max_bytes = self.max_bytes;
        let Some(body) = read_body(response, max_bytes, self.told).await? else {
            return Err(PostError::Unreadable(events::over_limit(max_bytes)).into());
        };
        let mut reading = lenient::read(&body);
        lenient::warn(&self.server, &reading.flaws);
        if let [_one] = reading.messages.as_slice() {
            let message = reading.messages.remove(0);
            let message = correlated(self.request.as_ref(), message)?;
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        let mut events = events::events_in(&body, max_bytes);
        if !reading.messages.is_empty() {
            // A batch.
            events = vec![Sse::default().data(body)];
        } else if !events.iter().any(|event| event.data.is_some()) {
            let what = format!("it is no message of JSON-RPC{}", said_text(&excerpt(&body)));
            return Err(PostError::Unreadable(what).into());
        }
        let events = stream::iter(events.into_iter().map(Ok)).boxed();
        let events = delivered(self.server, self.request, events);
        Ok(StreamableHttpPostResponse::Sse(events, session))
    }

    /// Returns the meaning of an error status. An error of JSON-RPC with the request's id is an answer.
    async fn refusal(
        self,
        status: StatusCode,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        if let Some(error) = challenge_of(status, &response) {
            return Err(error);
        }
        let refusal = Refusal::read(status, response, self.told).await;
        let mut messages = lenient::read(&refusal.body).messages.into_iter();
        let error = match messages.next() {
            Some(JsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        if let (Some(error), Some(request)) = (&error, &self.request)
            && error.id.as_ref().is_some_and(|id| is_same(id, request))
        {
            let mut error = error.clone();
            error.id = Some(request.clone());
            let message = JsonRpcMessage::Error(error);
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        let said = error.map(|error| error.error.message.into_owned());
        let said = refusal.said(said);
        let names_session = said.to_ascii_lowercase().contains("session");
        let is_session = match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => names_session,
            _ => false,
        };
        if is_session && self.session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if self.request.is_none() && status.is_client_error() {
            tracing::debug!(server = %self.server, %status, "an MCP server refused a notification");
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        Err(PostError::Refused {
            status,
            retry_after: refusal.retry_after,
            said: said.chars().take(MAX_SAID_CHARS).collect(),
        }
        .into())
    }
}

/// Returns the events with exact messages, one in an event. `request` is the id of the request that the stream answers.
fn delivered(
    server: Arc<str>,
    request: Option<RequestId>,
    events: BoxedSseResponse,
) -> BoxedSseResponse {
    let events = events.flat_map(move |event| match event {
        Ok(event) => stream::iter(mended(&server, request.as_ref(), event))
            .map(Ok)
            .boxed(),
        Err(error) => stream::iter([Err(error)]).boxed(),
    });
    events.boxed()
}

/// Returns an event for each message of an event. The last of them has the event's id, so that a stream that is resumed skips
/// no message.
fn mended(server: &str, request: Option<&RequestId>, event: Sse) -> VecDeque<Sse> {
    let reading = lenient::read(event.data.as_deref().unwrap_or_default());
    lenient::warn(server, &reading.flaws);
    let messages = reading.messages.into_iter().map(|message| {
        let is_answer = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        match request {
            Some(id) if is_answer => correlated(Some(id), message)
                .unwrap_or_else(|why| lenient::unreadable(id.clone(), &why.to_string())),
            _ => message,
        }
    });
    let data = messages.filter_map(|message| serde_json::to_string(&message).ok());
    let mut mended: VecDeque<Sse> = data.map(|data| Sse::default().data(data)).collect();
    if mended.is_empty() {
        mended.push_back(Sse::default());
    }
    if let Some(first) = mended.front_mut() {
        first.retry = event.retry;
    }
    if let Some(last) = mended.back_mut() {
        last.id = event.id;
    }
    mended
}

fn has_events(response: &Response) -> bool {
    has_type(response, EVENT_STREAM_MIME_TYPE)
}

pub(super) fn has_json(response: &Response) -> bool {
    has_type(response, JSON_MIME_TYPE)
}

fn has_type(response: &Response, media_type: &str) -> bool {
    let content_type = text_of(response, CONTENT_TYPE).unwrap_or_default();
    let content_type = content_type.trim_start().to_ascii_lowercase();
    content_type.starts_with(media_type)
}

/// Returns the error of a refusal with a challenge.
fn challenge_of(status: StatusCode, response: &Response) -> Option<HttpError> {
    let challenge = text_of(response, WWW_AUTHENTICATE)?;
    match status {
        StatusCode::UNAUTHORIZED => Some(StreamableHttpError::AuthRequired(
            AuthRequiredError::new(challenge),
        )),
        StatusCode::FORBIDDEN => Some(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(challenge, None),
        )),
        _ => None,
    }
}

/// Returns the remedy when the server has moved to an address that requests do not follow.
fn moved_to(status: StatusCode, response: &Response) -> Option<String> {
    let location = text_of(response, LOCATION).filter(|_| status.is_redirection())?;
    Some(format!(
        "the server moved to {location}; set `url` to this address"
    ))
}

/// The parts of a response with a status other than success.
struct Refusal {
    retry_after: Option<Duration>,
    moved: Option<String>,
    body: String,
}

impl Refusal {
    async fn read(status: StatusCode, response: Response, told: &Told) -> Self {
        let retry_after = text_of(&response, RETRY_AFTER).and_then(|value| seconds_of(&value));
        let moved = moved_to(status, &response);
        // A refusal whose body breaks off is a refusal.
        let body = read_body(response, MAX_REFUSAL_BYTES, told).await;
        Self {
            retry_after,
            moved,
            body: body.ok().flatten().unwrap_or_default(),
        }
    }

    /// Returns the words of the refusal: the remedy, or the text of an error, or the beginning of the body.
    fn said(&self, error: Option<String>) -> String {
        let said = self.moved.clone().or(error);
        said.unwrap_or_else(|| excerpt(&self.body))
    }
}

/// Makes the error of a response with a status other than success.
pub(super) async fn refused(status: StatusCode, response: Response, told: &Told) -> PostError {
    let refusal = Refusal::read(status, response, told).await;
    PostError::Refused {
        status,
        retry_after: refusal.retry_after,
        said: refusal.said(None),
    }
}

/// Gives an answer the id of its request. An answer with another id tells nothing of this request, except that the server has
/// read it: the official SDK of Python answers with the id `server-error` when a result cannot be serialised.
fn correlated(request: Option<&RequestId>, message: Message) -> Result<Message, PostError> {
    let Some(request) = request else {
        return Ok(message);
    };
    match message {
        JsonRpcMessage::Response(mut response) if is_same(&response.id, request) => {
            response.id = request.clone();
            Ok(JsonRpcMessage::Response(response))
        }
        JsonRpcMessage::Error(mut error) => match &error.id {
            Some(id) if is_same(id, request) => {
                error.id = Some(request.clone());
                Ok(JsonRpcMessage::Error(error))
            }
            _ => Err(PostError::Unreadable(error.error.message.into_owned())),
        },
        _ => Err(PostError::Unreadable(
            "it does not answer the request".to_owned(),
        )),
    }
}

/// Compares ids as text, because some servers return a number as a string.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

/// Reads a body without the secrets; `None` when the body has more than `max_bytes`. Invalid UTF-8 is replaced. The secrets
/// are cut first, because an excerpt that ends within a secret would show a part of the secret.
pub(super) async fn read_body(
    mut response: Response,
    max_bytes: usize,
    told: &Told,
) -> reqwest::Result<Option<String>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(told.cut_json(body)))
}

fn text_of(response: &Response, header: impl reqwest::header::AsHeaderName) -> Option<String> {
    let value = response.headers().get(header)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Returns the begin of a body for a person; empty for a page of HTML.
fn excerpt(body: &str) -> String {
    let body = body.trim();
    if body.starts_with('<') {
        return "a page of HTML".to_owned();
    }
    body.chars().take(MAX_SAID_CHARS).collect()
}

/// Reads a `Retry-After`: seconds, or a time (RFC 9110, section 10.2.3).
fn seconds_of(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTime::parse_from_rfc2822(value.trim()).ok()?;
    Some(
        (at.with_timezone(&Utc) - Utc::now())
            .to_std()
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorData, JsonRpcError};

    use super::*;

    #[test]
    fn an_error_with_another_id_is_no_answer() {
        let request = RequestId::Number(3);
        let error = |id: Option<RequestId>| {
            let error = ErrorData::internal_error("it cannot be serialised", None);
            correlated(
                Some(&request),
                JsonRpcMessage::Error(JsonRpcError::new(id, error)),
            )
        };
        assert!(error(Some(RequestId::Number(3))).is_ok());
        assert!(error(Some(RequestId::String("3".into()))).is_ok());
        for other in [None, Some(RequestId::String("server-error".into()))] {
            let unknown = error(other).unwrap_err().to_string();
            assert!(unknown.contains("serialised"), "{unknown}");
        }
    }

    #[test]
    fn a_wait_is_seconds_or_a_time() {
        assert_eq!(seconds_of(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(
            seconds_of("Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(seconds_of("soon"), None);
    }

    #[test]
    fn a_batch_in_an_event_is_an_event_for_each_message() {
        let request = RequestId::Number(3);
        let batch = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"3","result":{}},
            {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"lost"}}]"#;
        let event = Sse::default().event("result").id("7").retry(5).data(batch);
        let mended = mended("s", Some(&request), event);
        let field = |at: usize| (mended[at].id.as_deref(), mended[at].retry);
        assert_eq!(mended.len(), 3);
        assert_eq!([field(0), field(2)], [(None, Some(5)), (Some("7"), None)]);
        let data = |at: usize| mended[at].data.clone().unwrap();
        assert!(data(1).contains(r#""id":3"#), "{}", data(1));
        assert!(
            data(2).contains(r#""id":3"#) && data(2).contains("lost"),
            "{}",
            data(2)
        );
        assert!(mended.iter().all(|event| event.event.is_none()));
    }
}
