//! A server behind a URL: streamable HTTP.
//!
//! Servers up to protocol 2025-11-25 give a client a session, and forget the session at a restart. With this module,
//! no call waits for a forgotten session. An answer with another id ends its request (`post`).
//! A stream of events that cannot be resumed ends the connection ([`ResumeOrEnd`]).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    StatusCode,
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport,
    common::client_side_sse::{ExponentialBackoff, SseRetryPolicy},
    streamable_http_client::StreamableHttpClientTransportConfig,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{http_client::HttpClient, options::ServerOptions, sse::Way, told::Told};

/// The time limit for reaching the server. A call may then take as long as the tool's time-out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most redirects of a request.
const MAX_REDIRECTS: usize = 3;
/// The most tries to resume a broken stream of events. A server that keeps its events answers the call on a resumed
/// stream.
const RESUMES: usize = 3;
const FIRST_RESUME: Duration = Duration::from_millis(200);
/// The longest pause before a stream that the server ends at once is opened again.
const LAST_PAUSE: Duration = Duration::from_secs(10);
/// Streams that end further apart do not end in a row.
const ENDS_APART: Duration = Duration::from_secs(30);

/// Creates the transport without sending a request. Requests carry the token of `told`, and answers are read without
/// the secrets. `connection` is cancelled when the server turns out to be gone. The error names the fault in the
/// options.
pub(super) fn transport(
    options: &ServerOptions,
    url: &str,
    headers: &[(String, String)],
    told: Told,
    connection: CancellationToken,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    let client = client()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(options.max_message_bytes)
        .max_concurrent_requests(options.max_concurrent_calls)
        .custom_headers(header_map(headers)?)
        // rmcp would begin a new session while calls are in flight, and give the calls an error that looks like the
        // server's own. `link` makes a new connection instead, and knows the lost calls.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(ResumeOrEnd::new(connection));
    Ok(StreamableHttpClientTransport::with_client(
        HttpClient {
            client,
            server: options.name.as_str().into(),
            told,
        },
        config,
    ))
}

/// Returns how a server with the transport of protocol 2024-11-05 is reached. The error names the fault in the options.
pub(super) fn way(
    options: &ServerOptions,
    headers: &[(String, String)],
    told: Told,
) -> Result<Way, String> {
    Ok(Way {
        client: client()?,
        server: options.name.as_str().into(),
        headers: header_map(headers)?.into_iter().collect(),
        told,
        max_bytes: options.max_message_bytes,
    })
}

fn client() -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::custom(follow))
        // rmcp does so too: an unread body would stall the next request by 40 ms.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))
}

/// Follows a redirect that keeps the method and the origin: frameworks redirect `/mcp` to `/mcp/`. The URL is the operator's,
/// so headers with secrets do not go to another origin.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let origin = attempt.previous().first().map(Url::origin);
    let keeps_origin = origin.is_some_and(|origin| origin == attempt.url().origin());
    if keeps_method && keeps_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Resumes a broken stream of events a few times, then ends the connection, because the server is gone or has
/// forgotten the session. rmcp would continue without the stream, and only a later call would notice.
///
/// A stream that the server ends is opened again without a limit, with pauses that grow while the streams end at once.
#[derive(Debug)]
struct ResumeOrEnd {
    pauses: ExponentialBackoff,
    pauses_after_ends: ExponentialBackoff,
    connection: CancellationToken,
    ends: Mutex<Ends>,
}

/// The streams of a connection that a server has ended in a row.
#[derive(Debug, Default)]
struct Ends {
    count: usize,
    last: Option<Instant>,
}

impl Ends {
    /// Counts an end, and returns the number of earlier ends in the row.
    fn count(&mut self, now: Instant) -> usize {
        let is_in_row = self.last.is_some_and(|last| now - last < ENDS_APART);
        self.count = if is_in_row { self.count + 1 } else { 0 };
        self.last = Some(now);
        self.count
    }
}

impl ResumeOrEnd {
    fn new(connection: CancellationToken) -> Self {
        let mut pauses = ExponentialBackoff::default();
        (pauses.max_times, pauses.base_duration) = (Some(RESUMES), FIRST_RESUME);
        let mut pauses_after_ends = pauses.clone();
        (pauses_after_ends.max_times, pauses_after_ends.max_delay) = (None, Some(LAST_PAUSE));
        Self {
            pauses,
            pauses_after_ends,
            connection,
            ends: Mutex::default(),
        }
    }
}

impl SseRetryPolicy for ResumeOrEnd {
    fn retry(&self, tries: usize) -> Option<Duration> {
        // rmcp asks with 0 tries when the server has ended the stream, and with 1 and more after failed tries.
        if tries == 0 {
            let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            return self.pauses_after_ends.retry(ends.count(Instant::now()));
        }
        let pause = self.pauses.retry(tries);
        if pause.is_none() {
            self.connection.cancel();
        }
        pause
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, value): &(String, String)| {
        let parsed =
            HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of header `{name}` is not fit"))?;
        value.set_sensitive(true);
        Ok((parsed, value))
    };
    headers.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_at_once_is_opened_ever_more_seldom() {
        let connection = CancellationToken::new();
        let policy = ResumeOrEnd::new(connection.clone());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = policy.retry(0).unwrap();
            tokio::time::sleep(pause).await;
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        tokio::time::sleep(ENDS_APART).await;
        assert_eq!(policy.retry(0), Some(FIRST_RESUME));
        assert!(!connection.is_cancelled());
        assert_eq!(policy.retry(RESUMES), None);
        assert!(connection.is_cancelled());
    }

    #[test]
    fn headers_are_checked_without_showing_their_values() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            header_map(&[pair("authorization", "Bearer x")])
                .unwrap()
                .len(),
            1
        );
        assert!(header_map(&[pair("a b", "x")]).unwrap_err().contains("a b"));
        let error = header_map(&[pair("authorization", "secret\n")]).unwrap_err();
        assert!(
            error.contains("authorization") && !error.contains("secret"),
            "{error}"
        );
    }
}
