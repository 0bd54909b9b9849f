//! `everturn failures`: prints the failures of agents, for a person who looks for the reason of an alert.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use anyhow::Context;
use chrono::{DateTime, Utc};
use everturn_gateway::FailureBody;
use everturn_store::{AgentFailure, FailureCount, FailureFilter};
use everturn_supervisor::shutdown;
use everturn_terminal::{
    show,
    table::{age, columns},
};

use crate::{
    cli::{Common, FailuresOptions},
    connections,
};

/// The most lines of counts.
const MAX_COUNTS: u32 = 20;

/// Prints the counts by agent and code, and then the newest failures. A note on standard error says when more failures
/// exist.
pub async fn run(common: &Common, options: FailuresOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let store = connections::store_of_command(common, &shutdown).await?;
    let store = store.failures;
    let now = Utc::now();
    let filter = FailureFilter {
        tenant_id: options.tenant,
        agent: options.agent,
        code: options.code,
        since: options.since,
        until: options.until.unwrap_or(now),
    };
    let limit = options.limit;
    let found = store.failures(&filter, None, limit + 1).await;
    let mut found = found.context("cannot read the failures")?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let (text, is_empty) = if options.json {
        (lines(found)?, false)
    } else {
        let counts = store.failure_counts(&filter, MAX_COUNTS).await;
        let counts = counts.context("cannot count the failures")?;
        (table(&counts, &found, now), found.is_empty())
    };
    show::is_closed(write!(stdout(), "{text}"))?;
    if is_empty {
        eprintln!("no agent failed; --since reads an older period");
    }
    if has_more {
        eprintln!("more failures exist; choose an --agent or a --code, or raise --limit ({limit})");
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(found: Vec<AgentFailure>) -> anyhow::Result<String> {
    let lines = found
        .into_iter()
        .map(|failure| serde_json::to_string(&FailureBody::from(failure)).map(|line| line + "\n"));
    Ok(lines.collect::<Result<String, _>>()?)
}

/// Returns two tables: the counts, and the failures. Characters that could control a terminal are replaced.
fn table(counts: &[FailureCount], found: &[AgentFailure], now: DateTime<Utc>) -> String {
    if found.is_empty() {
        return String::new();
    }
    let code = |code: &Option<String>| show::shortened(code.as_deref().unwrap_or("-"));
    let mut counted = vec![["FAILURES", "AGENT", "CODE", "LAST"].map(str::to_owned)];
    counted.extend(counts.iter().map(|count| {
        let last = age(count.last_at, now);
        let agent = show::shortened(&count.agent);
        [
            count.failures.to_string(),
            agent,
            code(&count.error_code),
            last,
        ]
    }));
    let mut rows = vec![
        [
            "FAILED AT (UTC)",
            "AGENT",
            "CODE",
            "ATTEMPTS",
            "TENANT",
            "CONVERSATION",
            "TURN",
            "MESSAGE",
        ]
        .map(str::to_owned),
    ];
    rows.extend(found.iter().map(|failure| {
        [
            failure.finished_at.format("%Y-%m-%d %H:%M:%S").to_string(),
            show::shortened(&failure.agent),
            code(&failure.error_code),
            failure.step_calls.to_string(),
            show::shortened(&failure.tenant_id),
            show::shortened(failure.conversation_name()),
            show::shortened(&failure.message_id),
            show::shortened(failure.error_message.as_deref().unwrap_or_default()),
        ]
    }));
    format!("{}\n{}", columns(&counted), columns(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_stand_above_the_failures_and_steer_no_terminal() {
        let at: DateTime<Utc> = "2026-11-30T02:58:11Z".parse().unwrap();
        let count = FailureCount {
            agent: "support".into(),
            error_code: Some("llm_unavailable".into()),
            failures: 41,
            first_at: at,
            last_at: at,
        };
        let failure = AgentFailure {
            id: "run_1".into(),
            tenant_id: "acme".into(),
            conversation_id: "acme~talk-1".into(),
            message_id: "m1".into(),
            parent_execution_id: None,
            agent: "support".into(),
            error_code: Some("llm_unavailable".into()),
            error_message: Some("openai answered 503:\n\u{1b}[2Joverloaded".into()),
            step_calls: 3,
            started_at: at,
            finished_at: at,
        };
        let now = "2026-11-30T03:00:12Z".parse().unwrap();
        assert_eq!(
            table(&[count], &[failure], now),
            "FAILURES  AGENT    CODE             LAST\n\
             41        support  llm_unavailable  2 min ago\n\n\
             FAILED AT (UTC)      AGENT    CODE             ATTEMPTS  TENANT  CONVERSATION  TURN  MESSAGE\n\
             2026-11-30 02:58:11  support  llm_unavailable  3         acme    talk-1        m1    \
             openai answered 503:  [2Joverloaded\n"
        );
        assert_eq!(table(&[], &[], now), "");
    }
}
