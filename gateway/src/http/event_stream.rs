//! Sends a feed as a response of server-sent events.

use std::convert::Infallible;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use futures::StreamExt;

use crate::live::Feed;

/// Makes the response whose body is the feed.
pub(crate) fn response(feed: Feed) -> Response {
    let chunks = feed.into_chunks().map(Ok::<_, Infallible>);
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    // No proxy on the way may keep it, or hold small frames back to compress them.
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    // nginx and proxies like it would hold small frames back.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}
