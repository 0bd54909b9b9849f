//! `approval = …` of an agent's tool: the calls that a person must approve.

use std::time::Duration;

use everturn_proto::{Json, turn::ApprovalPolicy, words::ApprovalBy};
use toml::Value;

use crate::forms::duration;

/// The time-out of an approval whose policy sets no `timeout`: a weekend and one more day.
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(72);
/// The longest time-out: a month. A waiting turn costs nothing but a timer.
const MAX_TIMEOUT: Duration = Duration::from_hours(31 * 24);

const FORMS: &str = r#"write `approval` as "never", "always" or { when = { … a JSON schema of the arguments … }, timeout = "72h", by = "other" }"#;
/// The keys of an approval's table.
pub(crate) const KEYS: [&str; 3] = ["when", "timeout", "by"];

/// Reads the policy. `None` means: no call needs an approval. An error says what is wrong with the policy.
pub(super) fn policy(value: &Value) -> Result<Option<ApprovalPolicy>, String> {
    let (when, timeout, by) = match value {
        Value::String(word) if word == "never" => return Ok(None),
        Value::String(word) if word == "always" => (None, DEFAULT_TIMEOUT, None),
        Value::Table(table) => {
            if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
                return Err(format!("an approval has no `{unknown}`; {FORMS}"));
            }
            let timeout = match table.get("timeout") {
                Some(text) => read_timeout(text)?,
                None => DEFAULT_TIMEOUT,
            };
            let by = table.get("by").map(read_by).transpose()?.flatten();
            (table.get("when").map(schema).transpose()?, timeout, by)
        }
        _ => return Err(FORMS.to_owned()),
    };
    Ok(Some(ApprovalPolicy {
        when,
        timeout_s: u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX),
        by: by.map(String::from),
    }))
}

/// Reads who may approve. The default, "anyone", has no word in the agent's definition.
fn read_by(value: &Value) -> Result<Option<ApprovalBy>, String> {
    match value.as_str() {
        Some("anyone") => Ok(None),
        Some("other") => Ok(Some(ApprovalBy::Other)),
        _ => Err(r#"`by` of an approval is "anyone" or "other""#.to_owned()),
    }
}

fn read_timeout(value: &Value) -> Result<Duration, String> {
    value
        .as_str()
        .and_then(|text| duration(text, Duration::from_secs(1)..=MAX_TIMEOUT).ok())
        .ok_or_else(|| "the `timeout` of an approval is a duration from 1s to 31days".to_owned())
}

fn schema(value: &Value) -> Result<Json, String> {
    let schema = Json::of(value);
    match jsonschema::options().offline().build(&schema.to_value()) {
        Ok(_) if value.is_table() => Ok(schema),
        Ok(_) => Err(FORMS.to_owned()),
        Err(error) => Err(format!("`when` is not a JSON schema: {error}")),
    }
}
