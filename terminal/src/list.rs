//! `everturn ls`: lists the conversations of the caller.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use everturn_client::list::{ListFilter, ListedConversation};

use crate::{
    options::LsOptions,
    show,
    table::{age, columns},
};

/// Prints the conversations. A note on standard error says when more conversations exist.
pub async fn run(options: LsOptions) -> anyhow::Result<ExitCode> {
    let client = options.gateway.client()?;
    let filter = ListFilter {
        agent: options.agent,
        waiting_for: options.waiting_for,
        search: options.search,
    };
    let (found, is_all) = client.conversations(&filter, options.limit).await?;
    let text = if options.json {
        let lines = found
            .iter()
            .map(|found| serde_json::to_string(found.fields()).map(|line| line + "\n"));
        lines.collect::<Result<String, _>>()?
    } else {
        table(&found, Utc::now())
    };
    show::is_closed(write!(stdout(), "{text}"))?;
    if found.is_empty() && !options.json {
        eprintln!("no conversation is found; `everturn chat` begins a conversation");
    }
    if !is_all {
        eprintln!(
            "more conversations exist; raise --limit ({})",
            options.limit
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The conversations as a table.
fn table(found: &[ListedConversation], now: DateTime<Utc>) -> String {
    if found.is_empty() {
        return String::new();
    }
    let row = |found: &ListedConversation| {
        let texts = [found.id(), found.state(), found.agent(), found.title()];
        let [id, state, agent, title] = texts.map(show::shortened);
        let updated = DateTime::parse_from_rfc3339(found.updated_at());
        let updated = updated.map_or_else(|_| String::new(), |at| age(at.to_utc(), now));
        [id, state, agent, updated, title]
    };
    let head = ["ID", "STATE", "AGENT", "UPDATED", "TITLE"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(found.iter().map(row));
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn conversation(fields: &serde_json::Value) -> ListedConversation {
        ListedConversation::of(fields).unwrap()
    }

    #[test]
    fn columns_stand_below_each_other_and_control_characters_stay_out() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let found = [
            conversation(
                &json!({"id": "hello", "state": "waiting_for_approval", "agent": "support",
                "updated_at": "2026-11-21T11:59:30.5Z", "title": "你好\u{1b}[2J"}),
            ),
            conversation(
                &json!({"id": "01a20ccd", "state": "idle", "agent": "default",
                "updated_at": "2026-11-01T00:00:00Z", "title": null}),
            ),
        ];
        assert_eq!(
            table(&found, now),
            "ID        STATE                 AGENT    UPDATED   TITLE\n\
             hello     waiting_for_approval  support  29 s ago  你好 [2J\n\
             01a20ccd  idle                  default  20 d ago\n"
        );
        assert_eq!(table(&[], now), "");
    }
}
