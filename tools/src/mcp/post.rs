//! The POST of a request to a server behind a URL, after the handshake.
//!
//! rmcp's POST reads no body of a 404, drops an error with another id, and refuses every answer that is not exact. This POST
//! reads leniently, and tells a refusal by HTTP from an answer.
//!
//! Must not be here: the consequences for the call (`error.rs`).

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures::StreamExt;
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId},
    transport::{
        common::{
            client_side_sse::BoxedSseResponse,
            http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE},
        },
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};

use super::{
    lenient::{self, Message},
    told::HttpError,
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

/// A request to send.
pub(super) struct Post<'a> {
    /// The server's name in the log.
    pub(super) server: Arc<str>,
    pub(super) uri: &'a str,
    pub(super) message: &'a ClientJsonRpcMessage,
    pub(super) request: RequestId,
    pub(super) session_id: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
    /// The most bytes of an answer, or of an event of a stream.
    pub(super) max_bytes: usize,
}

impl Post<'_> {
    pub(super) async fn send(
        self,
        client: &reqwest::Client,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let accepted = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
        let mut post = client.post(self.uri).header(ACCEPT, accepted);
        if let Some(token) = &self.token {
            post = post.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        if let Some(session_id) = &self.session_id {
            post = post.header(HEADER_SESSION_ID, &**session_id);
        }
        let response = post.json(self.message).send().await?;
        match response.status() {
            // The answer comes on the stream of the session.
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            status if status.is_success() => self.answer(response).await,
            status => self.refusal(status, response).await,
        }
    }

    async fn answer(self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let session = text_of(&response, HEADER_SESSION_ID);
        let content_type = text_of(&response, CONTENT_TYPE).unwrap_or_default();
        if content_type.starts_with(EVENT_STREAM_MIME_TYPE) {
            let events = self.events(response);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let max_bytes = self.max_bytes;
        let Some(body) = read_body(response, max_bytes).await? else {
            return Err(too_large(max_bytes).into());
        };
        let message = self.read(&body)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    /// Reads the answer in a body.
    fn read(&self, body: &str) -> Result<Message, PostError> {
        let Some(reading) = lenient::read(body) else {
            return Err(PostError::Unreadable(format!(
                "it is no message of JSON-RPC{}",
                said_text(&excerpt(body))
            )));
        };
        if !reading.flaws.is_empty() {
            lenient::warn(&self.server, &reading.flaws);
        }
        correlated(&self.request, reading.message)
    }

    /// Tells what a status other than success means. An error of JSON-RPC with the request's id is an answer.
    async fn refusal(
        self,
        status: StatusCode,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let challenge = text_of(&response, WWW_AUTHENTICATE);
        match (status, challenge) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => {
                let required = AuthRequiredError::new(challenge);
                return Err(StreamableHttpError::AuthRequired(required));
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let scope = InsufficientScopeError::new(challenge, None);
                return Err(StreamableHttpError::InsufficientScope(scope));
            }
            _ => {}
        }
        let retry_after = text_of(&response, RETRY_AFTER).and_then(|value| seconds_of(&value));
        // A refusal whose body breaks off is a refusal.
        let body = read_body(response, MAX_REFUSAL_BYTES).await;
        let body = body.ok().flatten().unwrap_or_default();
        let error = match lenient::read(&body).map(|reading| reading.message) {
            Some(JsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let is_own = |id: &RequestId| is_same(id, &self.request);
        if let Some(error) = &error
            && error.id.as_ref().is_some_and(is_own)
        {
            let mut error = error.clone();
            error.id = Some(self.request);
            let message = JsonRpcMessage::Error(error);
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        let said = error.map_or_else(|| excerpt(&body), |error| error.error.message.into_owned());
        let names_session = said.to_ascii_lowercase().contains("session");
        let is_session = match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => names_session,
            _ => false,
        };
        if is_session && self.session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        Err(PostError::Refused {
            status,
            retry_after,
            said: said.chars().take(MAX_SAID_CHARS).collect(),
        }
        .into())
    }

    /// Reads the events of a stream leniently. An event over the limit ends this request alone.
    fn events(self, response: Response) -> BoxedSseResponse {
        let Self {
            server,
            request,
            max_bytes,
            ..
        } = self;
        let events = events(response, max_bytes).map(move |event| match event {
            Ok(mut event) => {
                event.data = event.data.map(|data| mended(&server, data));
                Ok(event)
            }
            Err(error) if is_too_large(&error) => {
                tracing::warn!(%server, max_bytes, "an MCP server sent an event over the limit (`max_message_bytes`)");
                let error = lenient::unreadable(request.clone(), &too_large(max_bytes).to_string());
                let error = serde_json::to_string(&error).unwrap_or_default();
                Ok(Sse::default().data(error))
            }
            Err(error) => Err(error),
        });
        events.boxed()
    }
}

/// Returns the events of a response, until an event exceeds the limit.
pub(super) fn events(response: Response, max_bytes: usize) -> BoxedSseResponse {
    let mut size = EventSize::default();
    let bytes = response.bytes_stream().scan(false, move |is_over, chunk| {
        if *is_over {
            return std::future::ready(None);
        }
        let chunk = chunk.map_err(io::Error::other).and_then(|chunk| {
            *is_over = size.exceeds(max_bytes, &chunk);
            if *is_over {
                return Err(io::Error::other(TooLarge));
            }
            Ok(chunk)
        });
        std::future::ready(Some(chunk))
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Makes the error of a response with a status other than success.
pub(super) async fn refused(status: StatusCode, response: Response) -> PostError {
    let retry_after = text_of(&response, RETRY_AFTER).and_then(|value| seconds_of(&value));
    // A refusal whose body breaks off is a refusal.
    let body = read_body(response, MAX_REFUSAL_BYTES).await;
    PostError::Refused {
        status,
        retry_after,
        said: excerpt(&body.ok().flatten().unwrap_or_default()),
    }
}

/// The bytes since the begin of an event.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    ends_line: bool,
}

impl EventSize {
    /// Counts a chunk. Returns true when an event exceeds the limit.
    fn exceeds(&mut self, max_bytes: usize, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                b'\n' if self.ends_line => self.bytes = 0,
                b'\r' => {}
                _ => self.bytes += 1,
            }
            if *byte != b'\r' {
                self.ends_line = *byte == b'\n';
            }
            if self.bytes > max_bytes {
                return true;
            }
        }
        false
    }
}

/// The error of an event over the limit.
#[derive(Debug, thiserror::Error)]
#[error("the event is too large")]
struct TooLarge;

fn is_too_large(error: &sse_stream::Error) -> bool {
    let sse_stream::Error::Body(error) = error else {
        return false;
    };
    let error = error.downcast_ref::<io::Error>();
    error
        .and_then(io::Error::get_ref)
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLarge>)
}

fn too_large(max_bytes: usize) -> PostError {
    PostError::Unreadable(format!(
        "it has more than {max_bytes} bytes (`max_message_bytes`)"
    ))
}

/// Returns the data of an event as exact JSON, if it is a message at all.
fn mended(server: &str, data: String) -> String {
    match lenient::read(&data) {
        Some(reading) if !reading.flaws.is_empty() => {
            lenient::warn(server, &reading.flaws);
            serde_json::to_string(&reading.message).unwrap_or(data)
        }
        _ => data,
    }
}

/// Gives an answer the id of its request. An answer with another id tells nothing of this request, except that the server has
/// read it: the official SDK of Python answers with the id `server-error` when a result cannot be serialised.
fn correlated(request: &RequestId, message: Message) -> Result<Message, PostError> {
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

/// Reads a body; `None` when it has more than `max_bytes`. Invalid UTF-8 is replaced.
async fn read_body(mut response: Response, max_bytes: usize) -> reqwest::Result<Option<String>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
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
                &request,
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
    fn the_size_of_an_event_begins_anew_after_an_empty_line() {
        let mut size = EventSize::default();
        assert!(!size.exceeds(12, b"data: abc\r\n\r\ndata: a\n\ndata: "));
        assert!(!size.exceeds(12, b"abcdef"));
        assert!(size.exceeds(12, b"g"));
    }
}
