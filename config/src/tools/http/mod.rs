//! `[tools.NAME]`: HTTP endpoints as tools.

mod headers;
mod signing;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

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
use super::{
    description::{WrittenEffect, WrittenTitle, checked_schema, checked_title},
    probe::{Asked, check_probe},
};
use crate::{
    checker::Checker,
    forms::{Form, HOUR, Number, OneOf, SECOND, Text, Time, Words, Written},
    names::{Names, Runner},
};

/// The default time-out, because users wait for half a minute. A slower service sets a time-out in its own table.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The largest schema of an input. The limit exists because a model has to read the whole schema.
const MAX_SCHEMA_BYTES: u64 = 256 * 1024;
/// The limit on a response. A model sees the first `TOOL_RESULT_INLINE_BYTES` in any case.
type ResponseBytes =
    Number<{ TOOL_RESULT_INLINE_BYTES as u64 }, { TOOL_RESULT_MAX_BYTES as u64 }, usize>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpToolTable {
    description: Written<Text>,
    title: Option<WrittenTitle>,
    method: Option<Written<OneOf<Method>>>,
    url: Written<UrlTemplate>,
    input: Option<Spanned<Value>>,
    input_file: Option<Spanned<String>>,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    auth: ToolAuthTable,
    effect: Option<WrittenEffect>,
    signing: Option<SigningTable>,
    timeout: Option<Written<Time<SECOND, HOUR>>>,
    max_response_bytes: Option<Written<ResponseBytes>>,
    idempotency_header: Option<Spanned<String>>,
    probe: Option<Spanned<String>>,
}

impl Words for Method {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("GET", Self::GET),
        ("POST", Self::POST),
        ("PUT", Self::PUT),
        ("PATCH", Self::PATCH),
        ("DELETE", Self::DELETE),
    ];
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
    check_probes(tables, &tools, check);
    tools
}

/// Checks that every probe is another HTTP tool that only reads and has no probe itself.
fn check_probes(
    tables: &BTreeMap<Spanned<String>, HttpToolTable>,
    tools: &[HttpToolDefinition],
    check: &mut Checker<'_>,
) {
    let find = |name: &str| tools.iter().find(|tool| tool.spec.name == name);
    for (name, table) in tables {
        let (Some(probe), Some(tool)) = (&table.probe, find(name.get_ref())) else {
            continue;
        };
        let asked = find(probe.get_ref()).map(|asked| Asked {
            effect: Some(&asked.spec.effect),
            has_probe: asked.probe.is_some(),
        });
        check_probe(check, probe, "`[tools]`", &tool.spec.effect, asked);
    }
}

impl HttpToolTable {
    fn check(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Option<HttpToolDefinition> {
        let description = check.value(&self.description);
        let url = check.value(&self.url);
        let parameters = self.schema(name, check);
        let schema = parameters.as_ref().unwrap_or(&Value::Null);
        let title = checked_title(check, self.title.as_ref(), schema);
        let headers = headers::fixed(&self.headers, check);
        let secrets = self.auth.check(check);
        let signing = self.signing.as_ref().and_then(|table| table.check(check));
        let idempotency_header = match &self.idempotency_header {
            Some(name) => headers::checked_name(name, check),
            None => Some(DEFAULT_IDEMPOTENCY_HEADER),
        };
        let timeout = check.value_or(&self.timeout, DEFAULT_TIMEOUT);
        let max_response_bytes = check.value_or(&self.max_response_bytes, TOOL_RESULT_MAX_BYTES);
        let method = check.value_or(&self.method, Method::GET);
        let effect = check.value_or(&self.effect, default_effect(&method));
        let definition = HttpToolDefinition {
            spec: ToolSpec {
                name: name.get_ref().clone(),
                description: description.unwrap_or_default(),
                parameters: parameters?,
                title,
                effect,
                is_inline: false,
            },
            method,
            url: url?,
            headers,
            secrets,
            signing,
            probe: self.probe.as_ref().map(|probe| probe.get_ref().clone()),
            idempotency_header: idempotency_header?,
            timeout,
            max_response_bytes,
        };
        self.check_inputs(&definition, check);
        Some(definition)
    }

    /// Checks that the request uses every input, and that every placeholder of the URL has an input.
    fn check_inputs(&self, tool: &HttpToolDefinition, check: &mut Checker<'_>) {
        let (at, schema) = (&self.url.at, &tool.spec.parameters);
        let is_required = |name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|known| known == name))
        };
        for name in tool.url.inputs() {
            if schema["properties"].get(name).is_none() {
                check.wrong(at, format!("`{{{name}}}` is no property of `input`"));
            } else if tool.url.path_inputs().contains(name) && !is_required(name) {
                check.wrong(
                    at,
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
                    at,
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
                let path = check.file_beside(file);
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

impl Form for UrlTemplate {
    type Toml = String;
    type Value = Self;

    fn read(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|reason| format!("cannot be used: {reason}"))
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
