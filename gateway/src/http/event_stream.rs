//! Sends the chunks of a feed as a response of server-sent events.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use futures::{Stream, StreamExt};

/// Makes the response with the chunks as its body.
pub(crate) fn response(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let chunks = chunks.map(Ok::<_, Infallible>);
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    // Proxies must not cache the stream, or hold small frames back to compress them.
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    // nginx and similar proxies would otherwise hold small frames back.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}
