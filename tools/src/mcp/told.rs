//! Secrets sent to a server. The secrets are cut out of the server's messages.

use std::sync::Arc;

use everturn_untrusted::Secrets;
use futures::StreamExt;
use rmcp::transport::{
    common::client_side_sse::BoxedSseResponse,
    streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse},
};

use super::oauth::Access;

/// The errors of a request, as defined by rmcp.
pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// Secrets sent to a server.
#[derive(Clone, Default)]
pub(super) struct Told {
    /// The secrets in the headers of requests to the server.
    pub(super) headers: Secrets,
    /// Provides the tokens, which change.
    pub(super) access: Option<Arc<Access>>,
}

impl Told {
    fn tokens(&self) -> Secrets {
        let access = self.access.as_ref();
        access.map(|access| access.secrets()).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.tokens().is_empty()
    }

    fn cut(&self, text: String) -> String {
        self.tokens().cut(self.headers.cut(text))
    }

    pub(super) fn cut_json(&self, json: String) -> String {
        self.tokens().cut_json(self.headers.cut_json(json))
    }

    /// Returns the answer without the secrets.
    pub(super) fn cut_response(
        &self,
        response: StreamableHttpPostResponse,
    ) -> StreamableHttpPostResponse {
        match response {
            StreamableHttpPostResponse::Json(message, session) if !self.is_empty() => {
                let written = serde_json::to_string(&message).unwrap_or_default();
                let cut = self.cut_json(written.clone());
                let read = (cut != written).then(|| serde_json::from_str(&cut).ok());
                StreamableHttpPostResponse::Json(read.flatten().unwrap_or(message), session)
            }
            StreamableHttpPostResponse::Sse(stream, session) => {
                StreamableHttpPostResponse::Sse(self.cut_stream(stream), session)
            }
            other => other,
        }
    }

    /// Returns the stream of events without the secrets.
    pub(super) fn cut_stream(&self, stream: BoxedSseResponse) -> BoxedSseResponse {
        let told = self.clone();
        let cut = stream.map(move |event| {
            event.map(|mut event| {
                event.data = event.data.map(|data| told.cut_json(data));
                event
            })
        });
        cut.boxed()
    }

    /// Returns the error without the secrets, because errors are logged.
    pub(super) fn cut_error(&self, error: HttpError) -> HttpError {
        match error {
            StreamableHttpError::UnexpectedServerResponse(said) => {
                let said = self.cut(said.into_owned());
                StreamableHttpError::UnexpectedServerResponse(said.into())
            }
            StreamableHttpError::UnexpectedContentType(Some(said)) => {
                StreamableHttpError::UnexpectedContentType(Some(self.cut(said)))
            }
            StreamableHttpError::AuthRequired(mut required) => {
                let said = std::mem::take(&mut required.www_authenticate_header);
                required.www_authenticate_header = self.cut(said);
                StreamableHttpError::AuthRequired(required)
            }
            StreamableHttpError::InsufficientScope(mut scope) => {
                let said = std::mem::take(&mut scope.www_authenticate_header);
                scope.www_authenticate_header = self.cut(said);
                scope.required_scope = scope.required_scope.map(|said| self.cut(said));
                StreamableHttpError::InsufficientScope(scope)
            }
            other => other,
        }
    }
}
