//! Tools that ask someone outside: approval policies, and `[client_tools.NAME]`.

use std::{collections::BTreeMap, time::Duration};

use everturn_activities::tools::{ClientTool, Effect, ToolSpec};
use everturn_proto::{Json, turn::ApprovalPolicy};
use serde::Deserialize;
use toml::Spanned;

use super::check::Checker;

/// How long an approval is waited for unless the policy says: over a weekend, and a day more.
const DEFAULT_APPROVAL_TIMEOUT: Duration = Duration::from_hours(72);
/// Up to a month: a turn that waits costs nothing but a timer.
const MAX_APPROVAL_TIMEOUT: Duration = Duration::from_hours(31 * 24);

/// A client tool is waited for: longer than one that a worker runs.
pub(super) const DEFAULT_CLIENT_TIMEOUT: Duration = Duration::from_hours(1);

const APPROVAL_FORMS: &str = r#"write `approval` as "never", "always" or { when = { … a JSON schema of the arguments … }, timeout = "72h" }"#;

/// `[client_tools.NAME]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientToolTable {
    description: Spanned<String>,
    #[serde(default)]
    input: toml::Table,
    #[serde(default)]
    effect: EffectWord,
}

/// What running the tool twice would do.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EffectWord {
    Read,
    Idempotent,
    #[default]
    Once,
}

/// The policy of `approval = …` of a tool, or what is wrong with it. `None`: no call needs an approval.
pub(super) fn approval_policy(value: &toml::Value) -> Result<Option<ApprovalPolicy>, String> {
    let table = match value {
        toml::Value::String(word) if word == "never" => return Ok(None),
        toml::Value::String(word) if word == "always" => {
            return Ok(Some(policy(None, DEFAULT_APPROVAL_TIMEOUT)));
        }
        toml::Value::Table(table) => table,
        _ => return Err(APPROVAL_FORMS.to_owned()),
    };
    if let Some(unknown) = table
        .keys()
        .find(|key| !matches!(key.as_str(), "when" | "timeout"))
    {
        return Err(format!("an approval has no `{unknown}`; {APPROVAL_FORMS}"));
    }
    let timeout = match table.get("timeout") {
        None => DEFAULT_APPROVAL_TIMEOUT,
        Some(text) => {
            let parsed = text
                .as_str()
                .and_then(|text| humantime::parse_duration(text).ok());
            let in_range = parsed.filter(|timeout| {
                (Duration::from_secs(1)..=MAX_APPROVAL_TIMEOUT).contains(timeout)
            });
            in_range.ok_or_else(|| {
                "the `timeout` of an approval is a duration from 1s to 31days".to_owned()
            })?
        }
    };
    let when = table.get("when").map(rule).transpose()?;
    Ok(Some(policy(when, timeout)))
}

fn policy(when: Option<Json>, timeout: Duration) -> ApprovalPolicy {
    ApprovalPolicy {
        when,
        timeout_s: u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX),
    }
}

fn rule(value: &toml::Value) -> Result<Json, String> {
    let rule = Json::of(value);
    match jsonschema::options().offline().build(&rule.to_value()) {
        Ok(_) if value.is_table() => Ok(rule),
        Ok(_) => Err(APPROVAL_FORMS.to_owned()),
        Err(error) => Err(format!("`when` is not a JSON schema: {error}")),
    }
}

impl Checker<'_> {
    /// Described before the agents that name them.
    pub(super) fn client_tools(
        &mut self,
        tables: BTreeMap<Spanned<String>, ClientToolTable>,
    ) -> Vec<ClientTool> {
        let mut described = Vec::new();
        for (name, table) in tables {
            self.client_tools.push(name.get_ref().clone());
            if self.add_tool(&name) {
                described.push(self.client_tool(&name, &table));
            }
        }
        described
    }

    fn client_tool(&mut self, name: &Spanned<String>, table: &ClientToolTable) -> ClientTool {
        ClientTool(self.described(name, &table.description, &table.input, table.effect))
    }

    /// A tool that is only described here, and runs elsewhere.
    pub(super) fn described(
        &mut self,
        name: &Spanned<String>,
        description: &Spanned<String>,
        input: &toml::Table,
        effect: EffectWord,
    ) -> ToolSpec {
        if description.get_ref().trim().is_empty() {
            self.wrong(
                description,
                "`description` tells the model when to use the tool; it must not be empty",
            );
        }
        let mut parameters = Json::of(input).to_value();
        if let Some(object) = parameters.as_object_mut() {
            object.entry("type").or_insert_with(|| "object".into());
        }
        if let Err(error) = jsonschema::options().offline().build(&parameters) {
            self.wrong(
                name,
                &format!("the `input` of this tool is not a JSON schema: {error}"),
            );
        }
        let effect = match effect {
            EffectWord::Read => Effect::Read,
            EffectWord::Idempotent => Effect::Idempotent,
            EffectWord::Once => Effect::Once,
        };
        ToolSpec {
            name: name.get_ref().clone(),
            description: description.get_ref().clone(),
            parameters,
            effect,
        }
    }
}
