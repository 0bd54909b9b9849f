//! The tables of `everturn.toml`, as written. Values that can be wrong keep their place in the file.

use std::collections::BTreeMap;

use everturn_activities::model::ProviderKind;
use everturn_proto::turn::ApprovalPolicy;
use serde::Deserialize;
use toml::Spanned;

use super::{
    auth::Auth,
    gateway,
    http_tools::{Egress, HttpTool},
    mcp,
    outside::{ClientToolTable, approval_policy},
    remote::RemoteToolTable,
    skills,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) providers: BTreeMap<Spanned<String>, Provider>,
    pub(super) agents: BTreeMap<Spanned<String>, Agent>,
    pub(super) tools: BTreeMap<Spanned<String>, HttpTool>,
    pub(super) client_tools: BTreeMap<Spanned<String>, ClientToolTable>,
    pub(super) remote_tools: BTreeMap<Spanned<String>, RemoteToolTable>,
    pub(super) egress: Egress,
    pub(super) mcp: BTreeMap<Spanned<String>, mcp::Table>,
    pub(super) skills: skills::Table,
    pub(super) limits: Limits,
    pub(super) worker: Worker,
    pub(super) auth: Auth,
    pub(super) gateway: gateway::Table,
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
    pub(super) tools: Vec<Spanned<toml::Value>>,
    #[serde(default)]
    pub(super) skills: Vec<Spanned<String>>,
    pub(super) max_steps: Option<Spanned<u32>>,
    pub(super) max_parallel_tools: Option<Spanned<u32>>,
    pub(super) llm_timeout: Option<Spanned<String>>,
    pub(super) tool_timeout: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) max_output_tokens: u32,
    pub(super) max_context_messages: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) delegates: Vec<Spanned<String>>,
    pub(super) max_depth: Option<Spanned<u32>>,
    pub(super) max_sub_agents: Option<Spanned<u32>>,
    pub(super) turn_timeout: Option<Spanned<String>>,
}

/// A tool: its name, or a table of its name, a time-out of its own and its approval policy.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) timeout: Option<String>,
    pub(super) approval: Option<ApprovalPolicy>,
}

impl Tool {
    /// Reads one by hand: an untagged enum would only say that nothing matched.
    pub(super) fn read(value: &toml::Value) -> Result<Self, String> {
        let table = match value {
            toml::Value::String(name) => {
                return Ok(Self {
                    name: name.clone(),
                    timeout: None,
                    approval: None,
                });
            }
            toml::Value::Table(table) => table,
            _ => return Err(TOOL_FORMS.to_owned()),
        };
        if let Some(unknown) = table
            .keys()
            .find(|key| !matches!(key.as_str(), "name" | "timeout" | "approval"))
        {
            return Err(format!("a tool has no `{unknown}`; {TOOL_FORMS}"));
        }
        let text = |key: &str| {
            table
                .get(key)
                .map(|value| value.as_str().map(str::to_owned).ok_or(TOOL_FORMS))
        };
        let name = text("name").ok_or(TOOL_FORMS)??;
        let approval = table
            .get("approval")
            .map(approval_policy)
            .transpose()?
            .flatten();
        Ok(Self {
            name,
            timeout: text("timeout").transpose()?,
            approval,
        })
    }
}

const TOOL_FORMS: &str =
    r#"write a tool as "name" or { name = "name", timeout = "30s", approval = "always" }"#;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) message_bytes: Option<Spanned<u32>>,
    pub(super) queued_messages: Option<Spanned<u32>>,
    pub(super) body_bytes: Option<Spanned<u32>>,
    pub(super) requests_per_second: Option<Spanned<u32>>,
    pub(super) request_burst: Option<Spanned<u32>>,
    pub(super) open_streams: Option<Spanned<u32>>,
    pub(super) concurrent_turns: Option<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Worker {
    pub(super) max_concurrent_activities: Option<Spanned<u32>>,
    pub(super) max_concurrent_workflow_tasks: Option<Spanned<u32>>,
    pub(super) max_cached_workflows: Option<Spanned<u32>>,
    pub(super) graceful_shutdown: Option<Spanned<String>>,
}
