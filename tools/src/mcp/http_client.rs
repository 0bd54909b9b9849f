//! The HTTP client below a server's connection: reqwest as used by rmcp, with three additions. Every error answers
//! its request, requests carry a token if the server requires one, and secrets are cut out of every answer.

use std::{collections::HashMap, sync::Arc};

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

use super::{
    authorized,
    told::{HttpError, Told},
};

/// reqwest's client, with additions for errors, tokens and secrets.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) client: reqwest::Client,
    /// The secrets of requests, which the server must not repeat.
    pub(super) told: Told,
}

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
        // rmcp calls the method below; this method does not apply the operator's limit.
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
        let sent = authorized::send(self.told.access.as_deref(), |token| {
            self.client.post_message_with_max_sse_event_size(
                Arc::clone(&uri),
                message.clone(),
                session_id.clone(),
                token.or_else(|| auth_header.clone()),
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        let response = sent.await;
        let response = response
            .map(|response| self.told.cut_response(response))
            .map_err(|error| self.told.cut_error(error))?;
        match request {
            Some(request) => correlated(&request, has_session, response),
            None => Ok(response),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let deleted = authorized::send(self.told.access.as_deref(), |token| {
            self.client.delete_session(
                Arc::clone(&uri),
                Arc::clone(&session_id),
                token.or_else(|| auth_header.clone()),
                custom_headers.clone(),
            )
        });
        let deleted = deleted.await;
        deleted.map_err(|error| self.told.cut_error(error))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        // rmcp calls the method below; this method does not apply the operator's limit.
        let limit = StreamableHttpClientTransportConfig::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let stream = authorized::send(self.told.access.as_deref(), |token| {
            self.client.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session_id.clone(),
                last_event_id.clone(),
                token.or_else(|| auth_header.clone()),
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        match stream.await {
            Ok(stream) => Ok(self.told.cut_stream(stream)),
            Err(error) => Err(self.told.cut_error(error)),
        }
    }
}

/// Gives an error the id of its request.
///
/// A server omits the id when it has not read the request. rmcp drops such an error, and the request would wait for
/// ever. In a session, the error means that the server does not know the session: many servers answer with 400
/// instead of the protocol's 404.
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

/// Compares ids as text, because some servers return a number as a string.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}
