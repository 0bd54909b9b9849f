//! HTTP tools: every endpoint described in the configuration is a tool.
//!
//! - `template`: the URL, with placeholders for inputs
//! - `reply`: turns a response into a result or an error
//!
//! Only [`crate::egress`] decides where requests may go.

mod reply;
mod template;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_proto::{Json, words::Effect};
use everturn_telemetry::trace;
use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};

pub use template::UrlTemplate;
pub(super) use template::encode;

use crate::egress::{Egress, EgressError, Outgoing, Signer, SigningKey};
use crate::{
    context::ToolContext,
    error::ToolError,
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// An endpoint as a tool.
#[derive(Debug, Clone)]
pub struct HttpToolDefinition {
    /// The definition for the model and the runtime.
    pub spec: ToolSpec,
    /// GET, POST, PUT, PATCH or DELETE. POST, PUT and PATCH send the inputs outside the URL as JSON.
    pub method: Method,
    /// The URL of the endpoint.
    pub url: UrlTemplate,
    /// Headers that are sent unchanged.
    pub headers: HeaderMap,
    /// Headers with secret values: marked as sensitive, and cut out of responses that repeat the values.
    pub secrets: HeaderMap,
    /// The key for signing requests. Without a key the service learns nothing about the caller, because it could not
    /// verify the caller; it gets only the tool-call id and the depth.
    pub signing: Option<SigningKey>,
    /// The name of the HTTP tool that tells whether a call has happened.
    pub probe: Option<String>,
    /// The header of the idempotency key; sent unless the effect is `read`, and by probes.
    pub idempotency_header: HeaderName,
    /// The time limit of a call, redirects included.
    pub timeout: Duration,
    /// The largest response body; a longer body is an error.
    pub max_response_bytes: usize,
}

/// A tool that calls an endpoint.
pub struct HttpTool {
    definition: HttpToolDefinition,
    egress: Egress,
}

impl HttpTool {
    /// Creates a tool that sends requests through `egress`.
    pub fn new(definition: HttpToolDefinition, egress: Egress) -> Self {
        Self { definition, egress }
    }

    fn request(&self, context: &ToolContext, input: &Json) -> Result<Outgoing, ToolError> {
        let tool = &self.definition;
        let unreadable =
            |error| ToolError::Failed(format!("The arguments cannot be read: {error}."));
        let mut inputs: BTreeMap<String, Json> = input.decode().map_err(unreadable)?;
        let mut values = BTreeMap::new();
        for name in tool.url.inputs() {
            if let Some(value) = inputs.remove(name).filter(|value| value.as_str() != "null") {
                values.insert(name.to_owned(), as_text(name, &value)?);
            }
        }
        let has_body = sends_body(&tool.method);
        if let Some(name) = inputs.keys().next().filter(|_| !has_body) {
            return Err(ToolError::Failed(format!("There is no argument `{name}`.")));
        }
        let mut headers = tool.headers.clone();
        headers.extend(tool.secrets.clone());
        if tool.spec.effect != Effect::Read || context.is_probe {
            let key = HeaderValue::from_str(&context.idempotency_key).map_err(|_| {
                ToolError::Failed("The ids of this call cannot be sent as a key.".to_owned())
            })?;
            headers.insert(tool.idempotency_header.clone(), key);
        }
        for (name, value) in context.headers_of_call().chain(trace::headers()) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value.try_into()) {
                headers.insert(name, value);
            }
        }
        let signing = tool.signing.clone();
        Ok(Outgoing {
            method: tool.method.clone(),
            url: tool.url.fill(&values).map_err(ToolError::Failed)?,
            headers,
            signer: signing.map(|key| Signer::new(key, context.headers())),
            body: has_body.then(|| Json::of(&inputs).as_str().to_owned()),
            timeout: tool.timeout,
            max_response_bytes: tool.max_response_bytes,
        })
    }
}

#[async_trait]
impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Http
    }

    fn probe(&self) -> Option<&str> {
        self.definition.probe.as_deref()
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        let request = self.request(&context, &input)?;
        let answer = self
            .egress
            .send(request)
            .await
            .map_err(|error| failed(&error))?;
        let HttpToolDefinition {
            secrets,
            max_response_bytes,
            ..
        } = &self.definition;
        reply::read(answer, secrets, *max_response_bytes)
    }
}

/// Returns true for methods that send the inputs outside the URL in a body.
pub fn sends_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Returns a value as text for a URL. Numbers keep their notation.
fn as_text(name: &str, value: &Json) -> Result<String, ToolError> {
    match value.as_str().as_bytes().first() {
        Some(b'"') => value
            .decode()
            .map_err(|error| ToolError::Failed(format!("`{name}` cannot be read: {error}."))),
        Some(b'{' | b'[') | None => Err(ToolError::Failed(format!(
            "`{name}` must be a string, a number or a boolean: it is part of a URL."
        ))),
        Some(_) => Ok(value.as_str().to_owned()),
    }
}

fn failed(error: &EgressError) -> ToolError {
    let message = error.to_string();
    match error {
        EgressError::Refused(_) | EgressError::Redirect(_) => ToolError::Failed(message),
        EgressError::Unreachable { .. } => ToolError::Unavailable {
            message,
            retry_after: None,
        },
        EgressError::NoAnswer { .. } => ToolError::Interrupted(message),
    }
}
