//! A server behind a URL: streamable HTTP.

use std::{collections::HashMap, time::Duration};

use reqwest::{
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
    streamable_http_client::StreamableHttpClientTransportConfig,
};

use super::options::ServerOptions;

/// To reach the server at all; a call may then take as long as the tool's time-out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Tries to take up a stream of events that broke; a server that keeps them answers the call on one. Then the call is
/// lost.
const RESUMES: usize = 3;
const FIRST_RESUME: Duration = Duration::from_millis(200);

/// The transport; nothing is sent yet. The error names what is wrong with the options.
pub(super) fn transport(
    options: &ServerOptions,
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // The URL is the operator's; headers with secrets go nowhere else.
        .redirect(redirect::Policy::none())
        // rmcp does so: a body that was not read to its end would stall the next request by 40 ms.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))?;
    let mut resume = ExponentialBackoff::default();
    (resume.max_times, resume.base_duration) = (Some(RESUMES), FIRST_RESUME);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(options.max_message_bytes)
        .max_concurrent_requests(options.max_concurrent_calls)
        .custom_headers(header_map(headers)?);
    config.retry_config = std::sync::Arc::new(resume);
    Ok(StreamableHttpClientTransport::with_client(client, config))
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
