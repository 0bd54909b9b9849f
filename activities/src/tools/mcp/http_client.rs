//! The HTTP client below a server's connection: reqwest as rmcp uses it, except that every error answers its request, and that
//! no answer has a secret in it.

use std::{collections::HashMap, sync::Arc};

use futures::StreamExt;
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

use crate::secrets::Secrets;

type HttpError = StreamableHttpError<reqwest::Error>;

/// reqwest's client with answers that find their requests, and have no secrets in them.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) client: reqwest::Client,
    /// What the server is sent and must not repeat.
    pub(super) secrets: Secrets,
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
            .client
            .post_message_with_max_sse_event_size(
                uri,
                message,
                session_id,
                auth_header,
                custom_headers,
                max_sse_event_size,
            )
            .await;
        let response = response
            .map(|response| cut_response(&self.secrets, response))
            .map_err(|error| cut_error(&self.secrets, error))?;
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
        let client = &self.client;
        let deleted = client.delete_session(uri, session_id, auth_header, custom_headers);
        let deleted = deleted.await;
        deleted.map_err(|error| cut_error(&self.secrets, error))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        // rmcp calls the method below; this one has no limit of the operator's.
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
        let stream = self.client.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        match stream.await {
            Ok(stream) => Ok(cut_stream(&self.secrets, stream)),
            Err(error) => Err(cut_error(&self.secrets, error)),
        }
    }
}

/// The answer without the secrets.
fn cut_response(
    secrets: &Secrets,
    response: StreamableHttpPostResponse,
) -> StreamableHttpPostResponse {
    match response {
        StreamableHttpPostResponse::Json(message, session) if !secrets.is_empty() => {
            let written = serde_json::to_string(&message).unwrap_or_default();
            let cut = secrets.cut_json(written.clone());
            let read = (cut != written).then(|| serde_json::from_str(&cut).ok());
            StreamableHttpPostResponse::Json(read.flatten().unwrap_or(message), session)
        }
        StreamableHttpPostResponse::Sse(stream, session) => {
            StreamableHttpPostResponse::Sse(cut_stream(secrets, stream), session)
        }
        other => other,
    }
}

/// The stream of events without the secrets.
fn cut_stream(secrets: &Secrets, stream: BoxedSseResponse) -> BoxedSseResponse {
    let secrets = secrets.clone();
    let cut = stream.map(move |event| {
        event.map(|mut event| {
            event.data = event.data.map(|data| secrets.cut_json(data));
            event
        })
    });
    cut.boxed()
}

/// The error without the secrets, which is logged.
fn cut_error(secrets: &Secrets, error: HttpError) -> HttpError {
    match error {
        StreamableHttpError::UnexpectedServerResponse(said) => {
            let said = secrets.cut(said.into_owned());
            StreamableHttpError::UnexpectedServerResponse(said.into())
        }
        StreamableHttpError::UnexpectedContentType(Some(said)) => {
            StreamableHttpError::UnexpectedContentType(Some(secrets.cut(said)))
        }
        StreamableHttpError::AuthRequired(mut required) => {
            let said = std::mem::take(&mut required.www_authenticate_header);
            required.www_authenticate_header = secrets.cut(said);
            StreamableHttpError::AuthRequired(required)
        }
        StreamableHttpError::InsufficientScope(mut scope) => {
            let said = std::mem::take(&mut scope.www_authenticate_header);
            scope.www_authenticate_header = secrets.cut(said);
            scope.required_scope = scope.required_scope.map(|said| secrets.cut(said));
            StreamableHttpError::InsufficientScope(scope)
        }
        other => other,
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
