//! Options of the commands that read the database and print rows: `audit` and `failures`.

use chrono::{DateTime, Utc};
use clap::Args;

use super::operate::parse_age;

/// Options of `audit`.
#[derive(Debug, Clone, Args)]
pub struct AuditOptions {
    /// Only entries of this tenant.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Only entries of this action, like key_created.
    #[arg(long, value_name = "ACTION")]
    pub action: Option<String>,
    /// Only entries of the key, session, subject or user with this id.
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Only entries up to this age, e.g. 7d or 12h, or since this time, like 2026-11-30T12:00:00Z.
    #[arg(long, value_name = "AGE|TIME", value_parser = parse_since)]
    pub since: Option<DateTime<Utc>>,
    /// Prints JSON lines in the API's export format.
    #[arg(long)]
    pub json: bool,
}

/// Options of `failures`.
#[derive(Debug, Clone, Args)]
pub struct FailuresOptions {
    /// Only failures of this agent.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only failures with this code, like llm_unavailable.
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// Only failures of this tenant.
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Only failures up to this age, e.g. 7d or 12h, or since this time, like 2026-11-30T12:00:00Z.
    #[arg(long, value_name = "AGE|TIME", default_value = "24h", value_parser = parse_since)]
    pub since: DateTime<Utc>,
    /// Only failures from before this age or this time; by default up to now.
    #[arg(long, value_name = "AGE|TIME", value_parser = parse_since)]
    pub until: Option<DateTime<Utc>>,
    /// The most failures to print, the newest first.
    #[arg(long, default_value_t = 20, value_name = "FAILURES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Prints the failures as JSON lines in the API's format, without the counts.
    #[arg(long)]
    pub json: bool,
}

fn parse_since(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.to_utc());
    }
    let age = parse_age(text)?;
    let since = chrono::TimeDelta::from_std(age).ok();
    let since = since.and_then(|age| Utc::now().checked_sub_signed(age));
    Ok(since.unwrap_or(DateTime::UNIX_EPOCH))
}
