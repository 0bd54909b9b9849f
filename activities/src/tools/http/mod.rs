//! HTTP tools: an endpoint described in the configuration is a tool.
//!
//! - `template`: the URL, with places for inputs
//! - `reply`: what an answer means for the model
//!
//! Where requests may go is decided in [`crate::egress`] alone.

mod reply;
mod template;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use everturn_proto::Json;
use everturn_telemetry::trace;
use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};

pub use template::UrlTemplate;
pub(super) use template::encode;

use super::{Tool, ToolContext, ToolError, ToolOrigin, ToolSpec};
use crate::egress::{Egress, EgressError, Outgoing, Signer, SigningKey};

/// An endpoint as a tool.
#[derive(Debug, Clone)]
pub struct HttpToolDefinition {
    /// What the model and the runtime are told.
    pub spec: ToolSpec,
    /// One of GET, POST, PUT, PATCH and DELETE. The middle three send the inputs that are not in the URL as JSON.
    pub method: Method,
    /// Where it goes.
    pub url: UrlTemplate,
    /// Headers that are sent as they are.
    pub headers: HeaderMap,
    /// Headers whose values must not be seen: marked as sensitive, and cut out of answers that repeat them.
    pub secrets: HeaderMap,
    /// The key with which requests are signed. Without one the service is not told for whom it is asked: it could not tell
    /// whether that is true.
    pub signing: Option<SigningKey>,
    /// Header of the idempotency key; sent unless the effect is `read`.
    pub idempotency_header: HeaderName,
    /// The time for one call, redirects included.
    pub timeout: Duration,
    /// What is read of an answer; a longer one is an error.
    pub max_response_bytes: usize,
}

/// A tool that calls an endpoint.
pub struct HttpTool {
    definition: HttpToolDefinition,
    egress: Egress,
}

impl HttpTool {
    /// A tool that sends its requests through `egress`.
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
        if tool.spec.effect != super::Effect::Read {
            let key = HeaderValue::from_str(&context.idempotency_key).map_err(|_| {
                ToolError::Failed("The ids of this call cannot be sent as a key.".to_owned())
            })?;
            headers.insert(tool.idempotency_header.clone(), key);
        }
        for (name, value) in trace::headers() {
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

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        let request = self.request(&context, &input)?;
        let answer = self
            .egress
            .send(request)
            .await
            .map_err(|error| failed(&error))?;
        reply::read(answer, &self.definition)
    }
}

/// True for methods whose requests carry the inputs that are not in the URL.
pub fn sends_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// A value as it is put into a URL. Numbers stay as they were written.
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
