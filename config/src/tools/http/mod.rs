//! `[tools.NAME]`: HTTP endpoints as tools.

mod headers;
mod signing;

use std::{collections::BTreeMap, fs, ops::RangeInclusive, path::Path, time::Duration};

use everturn_proto::limits::{TOOL_RESULT_INLINE_BYTES, TOOL_RESULT_MAX_BYTES};
use everturn_tools::{
    Effect, ToolSpec,
    http::{HttpToolDefinition, UrlTemplate, sends_body},
};
use reqwest::{Method, header::HeaderName};
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use self::{
    headers::{Headers, ToolAuthTable},
    signing::SigningTable,
};
use super::description::{WrittenEffect, checked_description, checked_schema};
use crate::{
    checker::{Checker, HOUR, SECOND},
    names::{Names, Runner},
};

/// The default time-out, because users wait for half a minute. A slower service sets a time-out in its own table.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: RangeInclusive<Duration> = SECOND..=HOUR;
const DEFAULT_IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The largest schema of an input. The limit exists because a model has to read the whole schema.
const MAX_SCHEMA_BYTES: u64 = 256 * 1024;
/// The limit on a response. A model sees the first `TOOL_RESULT_INLINE_BYTES` in any case.
const RESPONSE_BYTES: RangeInclusive<usize> = TOOL_RESULT_INLINE_BYTES..=TOOL_RESULT_MAX_BYTES;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpToolTable {
    description: Spanned<String>,
    #[serde(default)]
    method: WrittenMethod,
    url: Spanned<String>,
    input: Option<Spanned<Value>>,
    input_file: Option<Spanned<String>>,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    auth: ToolAuthTable,
    effect: Option<WrittenEffect>,
    signing: Option<SigningTable>,
    timeout: Option<Spanned<String>>,
    max_response_bytes: Option<Spanned<usize>>,
    idempotency_header: Option<Spanned<String>>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum WrittenMethod {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

pub(crate) fn check(
    tables: &BTreeMap<Spanned<String>, HttpToolTable>,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<HttpToolDefinition> {
    let mut tools = Vec::new();
    for (name, table) in tables {
        if names.add_tool(check, name, Runner::Worker) {
            tools.extend(table.check(name, check));
        }
    }
    tools
}

impl HttpToolTable {
    fn check(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Option<HttpToolDefinition> {
        let description = checked_description(check, &self.description);
        let url = UrlTemplate::parse(self.url.get_ref()).map_err(|reason| {
            check.wrong(&self.url, format!("`url` cannot be used: {reason}"));
        });
        let parameters = self.schema(name, check);
        let headers = headers::fixed(&self.headers, check);
        let secrets = self.auth.check(check);
        let signing = self.signing.as_ref().and_then(|table| table.check(check));
        let idempotency_header = match &self.idempotency_header {
            Some(name) => headers::checked_name(name, check),
            None => Some(DEFAULT_IDEMPOTENCY_HEADER),
        };
        let timeout = check.duration("timeout", &self.timeout, DEFAULT_TIMEOUT, TIMEOUT);
        let max_response_bytes = check.number(
            "max_response_bytes",
            &self.max_response_bytes,
            *RESPONSE_BYTES.end(),
            RESPONSE_BYTES,
        );
        let method = Method::from(self.method);
        let definition = HttpToolDefinition {
            spec: ToolSpec {
                name: name.get_ref().clone(),
                description,
                parameters: parameters?,
                effect: self
                    .effect
                    .map_or_else(|| default_effect(&method), Effect::from),
                is_inline: false,
            },
            method,
            url: url.ok()?,
            headers,
            secrets,
            signing,
            idempotency_header: idempotency_header?,
            timeout,
            max_response_bytes,
        };
        self.check_inputs(&definition, check);
        Some(definition)
    }

    /// Checks that the request uses every input, and that every placeholder of the URL has an input.
    fn check_inputs(&self, tool: &HttpToolDefinition, check: &mut Checker<'_>) {
        let schema = &tool.spec.parameters;
        let is_required = |name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|known| known == name))
        };
        for name in tool.url.inputs() {
            if schema["properties"].get(name).is_none() {
                check.wrong(&self.url, format!("`{{{name}}}` is no property of `input`"));
            } else if tool.url.path_inputs().contains(name) && !is_required(name) {
                check.wrong(
                    &self.url,
                    format!("`{{{name}}}` is part of the path: put it into `required` of `input`"),
                );
            }
        }
        if sends_body(&tool.method) {
            return;
        }
        let properties = schema["properties"].as_object();
        for name in properties.into_iter().flat_map(serde_json::Map::keys) {
            if !tool.url.inputs().contains(name.as_str()) {
                let method = &tool.method;
                check.wrong(
                    &self.url,
                    format!(
                        "`{name}` of `input` has no place in `url`, and a {method} has no body"
                    ),
                );
            }
        }
    }

    fn schema(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Option<Value> {
        match (&self.input, &self.input_file) {
            (Some(_), Some(file)) => {
                check.wrong(file, "the tool has `input` and `input_file`; keep one");
                None
            }
            (Some(input), None) => Some(checked_schema(check, input, input.get_ref().clone())),
            (None, Some(file)) => {
                let path = check.path_beside_file(Path::new(file.get_ref()));
                match read_schema(&path) {
                    Ok(schema) => Some(checked_schema(check, file, schema)),
                    Err(reason) => {
                        let path = path.display();
                        check.wrong(
                            file,
                            format!("`input_file` {path} cannot be used: {reason}"),
                        );
                        None
                    }
                }
            }
            (None, None) => {
                let none = json!({"properties": {}, "additionalProperties": false});
                Some(checked_schema(check, name, none))
            }
        }
    }
}

impl From<WrittenMethod> for Method {
    fn from(method: WrittenMethod) -> Self {
        match method {
            WrittenMethod::Get => Self::GET,
            WrittenMethod::Post => Self::POST,
            WrittenMethod::Put => Self::PUT,
            WrittenMethod::Patch => Self::PATCH,
            WrittenMethod::Delete => Self::DELETE,
        }
    }
}

/// Returns the default effect. A GET changes nothing (RFC 9110, 9.2.1). PUT and DELETE should be idempotent, but some
/// services violate the rule. An operator with a service that follows the rule sets `effect`.
fn default_effect(method: &Method) -> Effect {
    if *method == Method::GET {
        Effect::Read
    } else {
        Effect::Once
    }
}

fn read_schema(path: &Path) -> Result<Value, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_SCHEMA_BYTES {
        return Err(format!(
            "the schema has {size} bytes; the limit is {MAX_SCHEMA_BYTES}"
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
