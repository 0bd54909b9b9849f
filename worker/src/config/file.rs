//! The tables of `everturn.toml`, as written. Values that can be wrong keep their place in the file.

use std::collections::BTreeMap;

use everturn_activities::model::ProviderKind;
use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) providers: BTreeMap<Spanned<String>, Provider>,
    pub(super) agents: BTreeMap<Spanned<String>, Agent>,
    pub(super) limits: Limits,
    pub(super) worker: Worker,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Provider {
    pub(super) kind: ProviderKind,
    pub(super) base_url: Option<Spanned<String>>,
    pub(super) api_key_env: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    pub(super) provider: Spanned<String>,
    pub(super) model: Spanned<String>,
    #[serde(default)]
    pub(super) instructions: String,
    #[serde(default)]
    pub(super) tools: Vec<Spanned<Tool>>,
    pub(super) max_steps: Option<Spanned<u32>>,
    pub(super) llm_timeout: Option<Spanned<String>>,
    pub(super) tool_timeout: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) max_output_tokens: u32,
    pub(super) max_context_messages: Option<Spanned<u32>>,
}

/// A tool by name, or with a time-out of its own.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Tool {
    Name(String),
    Table(ToolTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolTable {
    pub(super) name: String,
    pub(super) timeout: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) message_bytes: Option<Spanned<u32>>,
    pub(super) queued_messages: Option<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Worker {
    pub(super) max_concurrent_activities: Option<Spanned<u32>>,
    pub(super) max_concurrent_workflow_tasks: Option<Spanned<u32>>,
    pub(super) max_cached_workflows: Option<Spanned<u32>>,
    pub(super) graceful_shutdown: Option<Spanned<String>>,
}
