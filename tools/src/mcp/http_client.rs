//! The HTTP client below a server's connection. rmcp's client asks `server/discover`, and `post` sends all other messages.
//! Requests carry a token if the server requires one, and secrets are cut out of every answer.

use std::{collections::HashMap, sync::Arc};

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId},
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpPostResponse,
        },
    },
};

use super::{
    authorized,
    post::Post,
    told::{HttpError, Told},
};

const VERSION_HEADER: &str = "mcp-protocol-version";
/// The version of the protocol whose sessions this client does not end. The official SDK for Python of that time (1.8 and 1.9) ends
/// the whole server, for all of its clients, when a client ends a session.
const FRAGILE_VERSION: &str = "2025-03-26";

/// reqwest's client, with additions for errors, tokens and secrets.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) client: reqwest::Client,
    /// The server's name in the log.
    pub(super) server: Arc<str>,
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
        let recipient = recipient(&message);
        let sent = authorized::send(self.told.access.as_deref(), |token| {
            let token = token.or_else(|| auth_header.clone());
            self.post(
                &uri,
                &message,
                recipient.clone(),
                session_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        let response = sent.await;
        response
            .map(|response| self.told.cut_response(response))
            .map_err(|error| self.told.cut_error(error))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let version = custom_headers.get(&HeaderName::from_static(VERSION_HEADER));
        if version.is_some_and(|version| version == FRAGILE_VERSION) {
            return Ok(());
        }
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
            let post = Post {
                server: Arc::clone(&self.server),
                uri: &uri,
                request: None,
                session_id: session_id.clone(),
                token: token.or_else(|| auth_header.clone()),
                headers: custom_headers.clone(),
                max_bytes: max_sse_event_size,
                told: &self.told,
            };
            post.listen(&self.client, last_event_id.clone())
        });
        match stream.await {
            Ok(stream) => Ok(self.told.cut_stream(stream)),
            Err(error) => Err(self.told.cut_error(error)),
        }
    }
}

impl HttpClient {
    #[expect(clippy::too_many_arguments, reason = "the arguments of rmcp's trait")]
    async fn post(
        &self,
        uri: &Arc<str>,
        message: &ClientJsonRpcMessage,
        recipient: Recipient,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = match recipient {
            Recipient::Rmcp => {
                let (uri, message) = (Arc::clone(uri), message.clone());
                let sent = self.client.post_message_with_max_sse_event_size(
                    uri, message, session_id, token, headers, max_bytes,
                );
                return sent.await;
            }
            Recipient::Request(id) => Some(id),
            Recipient::Nobody => None,
        };
        let post = Post {
            server: Arc::clone(&self.server),
            uri,
            request,
            session_id,
            token,
            headers,
            max_bytes,
            told: &self.told,
        };
        post.send(&self.client, message).await
    }
}

/// Who waits for the answer to a message.
#[derive(Clone)]
enum Recipient {
    /// rmcp, which negotiates the protocol with the details of its own POST.
    Rmcp,
    Request(RequestId),
    /// The message is a notification or an answer.
    Nobody,
}

fn recipient(message: &ClientJsonRpcMessage) -> Recipient {
    match message {
        JsonRpcMessage::Request(request) => match request.request {
            ClientRequest::DiscoverRequest(_) => Recipient::Rmcp,
            _ => Recipient::Request(request.id.clone()),
        },
        JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Response(_)
        | JsonRpcMessage::Error(_) => Recipient::Nobody,
    }
}
