//! The HTTP client below a server's connection: reqwest as rmcp uses it, except that every error answers its request.

use std::{collections::HashMap, future::Future, sync::Arc};

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId},
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};

type HttpError = StreamableHttpError<reqwest::Error>;

/// reqwest's client with answers that find their requests.
#[derive(Clone)]
pub(super) struct HttpClient(pub(super) reqwest::Client);

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        // rmcp calls the method below; this one has no limit of the operator's.
        let limit = StreamableHttpClientTransportConfig::default().max_sse_event_size;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let has_session = session_id.is_some();
        let response = self
            .0
            .post_message_with_max_sse_event_size(
                uri,
                message,
                session_id,
                auth_header,
                custom_headers,
                max_sse_event_size,
            )
            .await?;
        match request {
            Some(request) => correlated(&request, has_session, response),
            None => Ok(response),
        }
    }

    fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + '_ {
        self.0
            .delete_session(uri, session_id, auth_header, custom_headers)
    }

    fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> impl Future<Output = Result<BoxedSseResponse, HttpError>> + Send + '_ {
        self.0
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
    }

    fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> impl Future<Output = Result<BoxedSseResponse, HttpError>> + Send + '_ {
        self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        )
    }
}

/// Gives an error the id of the request that it answers.
///
/// A server leaves the id out when it did not read the request. rmcp drops such an error, and its request would wait
/// for ever. In a session it means that the server does not know the session: many servers say so with 400 and not,
/// as the protocol wants, with 404.
fn correlated(
    request: &RequestId,
    has_session: bool,
    response: StreamableHttpPostResponse,
) -> Result<StreamableHttpPostResponse, HttpError> {
    match response {
        StreamableHttpPostResponse::Json(JsonRpcMessage::Error(mut error), session)
            if !error.id.as_ref().is_some_and(|id| is_same(id, request)) =>
        {
            if has_session {
                return Err(StreamableHttpError::SessionExpired);
            }
            error.id = Some(request.clone());
            Ok(StreamableHttpPostResponse::Json(
                JsonRpcMessage::Error(error),
                session,
            ))
        }
        other => Ok(other),
    }
}

/// Some servers give a number back as a string.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}
