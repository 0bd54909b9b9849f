//! `[tools.*]` and `[egress]`: endpoints as tools, and where tools may connect to.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use everturn_activities::{
    egress::EgressPolicy,
    tools::{
        Effect, ToolSpec,
        http::{HttpToolDefinition, UrlTemplate, sends_body},
    },
};
use everturn_proto::limits::{TOOL_RESULT_INLINE_BYTES, TOOL_RESULT_MAX_BYTES};
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::check::{Checker, SECOND};

/// Half a minute is what users wait for; slower services say so in their table.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_hours(1);
const DEFAULT_IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// What a schema file may have; a model has to read all of it.
const MAX_SCHEMA_BYTES: u64 = 256 * 1024;
/// Headers that belong to the connection, or hold secrets, which have a place of their own.
const RESERVED_HEADERS: [&str; 10] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// An endpoint as a tool, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpTool {
    description: Spanned<String>,
    #[serde(default)]
    method: Verb,
    url: Spanned<String>,
    input: Option<Spanned<Value>>,
    input_file: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    auth: Auth,
    effect: Option<Effect>,
    timeout: Option<Spanned<String>>,
    max_response_bytes: Option<Spanned<u32>>,
    idempotency_header: Option<Spanned<String>>,
}

/// Where a tool's secrets are: names of environment variables.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Auth {
    bearer_env: Option<Spanned<String>>,
    headers_env: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Egress {
    allow: Vec<Spanned<String>>,
}

impl Checker<'_> {
    pub(super) fn egress(&mut self, table: &Egress) -> EgressPolicy {
        let mut policy = EgressPolicy::default();
        for entry in &table.allow {
            if let Err(reason) = policy.allow(entry.get_ref()) {
                self.wrong(
                    entry,
                    &format!("`{}` cannot be allowed: {reason}", entry.get_ref()),
                );
            }
        }
        policy
    }

    pub(super) fn http_tool(
        &mut self,
        name: &Spanned<String>,
        table: &HttpTool,
    ) -> Option<HttpToolDefinition> {
        if table.description.get_ref().trim().is_empty() {
            self.wrong(
                &table.description,
                "`description` is what the model chooses a tool by; say what it does",
            );
        }
        let url = UrlTemplate::parse(table.url.get_ref())
            .map_err(|reason| self.wrong(&table.url, &format!("`url` cannot be used: {reason}")));
        let parameters = self.schema(table);
        let headers = self.headers(&table.headers);
        let secrets = self.secrets(&table.auth);
        let idempotency_header = table
            .idempotency_header
            .as_ref()
            .map(|name| self.header_name(name));
        let timeout = self.duration(
            "timeout",
            table.timeout.as_ref(),
            DEFAULT_TIMEOUT,
            SECOND..=MAX_TIMEOUT,
        );
        let max_response_bytes = self.max_response_bytes(table.max_response_bytes.as_ref());
        let method = table.method.method();
        let definition = HttpToolDefinition {
            spec: ToolSpec {
                name: name.get_ref().clone(),
                description: table.description.get_ref().clone(),
                parameters: parameters?,
                effect: table.effect.unwrap_or_else(|| default_effect(&method)),
            },
            method,
            url: url.ok()?,
            headers,
            secrets,
            idempotency_header: idempotency_header.unwrap_or(Some(DEFAULT_IDEMPOTENCY_HEADER))?,
            timeout,
            max_response_bytes,
        };
        self.fits(&table.url, &definition);
        Some(definition)
    }

    /// Every input has its place, and every place an input.
    fn fits(&mut self, url: &Spanned<String>, tool: &HttpToolDefinition) {
        let schema = &tool.spec.parameters;
        let is_required = |name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|known| known == name))
        };
        for name in tool.url.inputs() {
            if schema["properties"].get(name).is_none() {
                self.wrong(url, &format!("`{{{name}}}` is no property of `input`"));
            } else if tool.url.path_inputs().contains(name) && !is_required(name) {
                self.wrong(
                    url,
                    &format!("`{{{name}}}` is part of the path: put it into `required` of `input`"),
                );
            }
        }
        if sends_body(&tool.method) {
            return;
        }
        for name in schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
        {
            if !tool.url.inputs().contains(name.as_str()) {
                let message = format!(
                    "`{name}` of `input` has no place in `url`, and a {} has no body",
                    tool.method
                );
                self.wrong(url, &message);
            }
        }
    }

    fn schema(&mut self, table: &HttpTool) -> Option<Value> {
        let mut schema = match (&table.input, &table.input_file) {
            (Some(_), Some(file)) => {
                self.wrong(file, "there are `input` and `input_file`; keep one of them");
                return None;
            }
            (Some(input), None) => input.get_ref().clone(),
            (None, Some(file)) => {
                let path = Path::new(self.file_name()).with_file_name(file.get_ref());
                let read = read_schema(&path).map_err(|reason| {
                    self.wrong(
                        file,
                        &format!("`input_file` {} cannot be used: {reason}", path.display()),
                    );
                });
                read.ok()?
            }
            (None, None) => json!({"properties": {}, "additionalProperties": false}),
        };
        if let Some(object) = schema.as_object_mut() {
            object.entry("type").or_insert_with(|| "object".into());
        }
        Some(schema)
    }

    fn headers(&mut self, table: &BTreeMap<Spanned<String>, Spanned<String>>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in table {
            let Some(header) = self.header_name(name) else {
                continue;
            };
            if RESERVED_HEADERS.contains(&header.as_str()) {
                self.wrong(
                    name,
                    &format!("`{header}` cannot be set here; secrets go into `auth`"),
                );
            }
            match HeaderValue::from_str(value.get_ref()) {
                Ok(value) => drop(headers.insert(header, value)),
                Err(_) => self.wrong(value, "the value holds characters that no header has"),
            }
        }
        headers
    }

    fn secrets(&mut self, auth: &Auth) -> HeaderMap {
        let mut secrets = HeaderMap::new();
        if let Some(variable) = &auth.bearer_env {
            let token = self.secret("bearer_env", variable);
            self.add_secret(
                &mut secrets,
                AUTHORIZATION,
                variable,
                &format!("Bearer {}", token.trim()),
            );
        }
        for (name, variable) in &auth.headers_env {
            let Some(header) = self.header_name(name) else {
                continue;
            };
            let value = self.secret("headers_env", variable);
            self.add_secret(&mut secrets, header, variable, value.trim());
        }
        secrets
    }

    fn add_secret(
        &mut self,
        secrets: &mut HeaderMap,
        header: HeaderName,
        variable: &Spanned<String>,
        value: &str,
    ) {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            secrets.insert(header, value);
        } else {
            let message = format!(
                "the value of {} holds characters that no header has",
                variable.get_ref()
            );
            self.wrong(variable, &message);
        }
    }

    fn header_name(&mut self, name: &Spanned<String>) -> Option<HeaderName> {
        let header = name.get_ref().parse().map_err(|_| {
            self.wrong(
                name,
                &format!("`{}` is no name of a header", name.get_ref()),
            );
        });
        header.ok()
    }

    fn max_response_bytes(&mut self, value: Option<&Spanned<u32>>) -> usize {
        let bytes = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        // A model sees the first of these in any case.
        let range = bytes(TOOL_RESULT_INLINE_BYTES)..=bytes(TOOL_RESULT_MAX_BYTES);
        let limit = self.number("max_response_bytes", value, *range.end(), range);
        usize::try_from(limit).unwrap_or(TOOL_RESULT_MAX_BYTES)
    }
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

/// A GET changes nothing (RFC 9110, 9.2.1). PUT and DELETE should be idempotent, but not every service keeps to that:
/// whoever knows that theirs does says so.
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
            "it has {size} bytes; the limit is {MAX_SCHEMA_BYTES}"
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
