//! `everturn ls`: lists the conversations of the caller.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_client::list::{ListFilter, ListedConversation};
use unicode_width::UnicodeWidthStr;

use crate::{options::LsOptions, show};

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

/// The conversations as a table. Widths are columns of the terminal.
fn table(found: &[ListedConversation], now: DateTime<Utc>) -> String {
    if found.is_empty() {
        return String::new();
    }
    let row = |found: &ListedConversation| {
        let texts = [found.id(), found.state(), found.agent(), found.title()];
        let [id, state, agent, title] = texts.map(show::shortened);
        [id, state, agent, age(found.updated_at(), now), title]
    };
    let head = ["ID", "STATE", "AGENT", "UPDATED", "TITLE"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(found.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths: Vec<_> = (0..4).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            text += cell;
            text += &" ".repeat(width - cell.width() + 2);
        }
        text += row[4].as_str();
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// The time since a change, in its largest unit.
fn age(time: &str, now: DateTime<Utc>) -> String {
    let Ok(time) = DateTime::parse_from_rfc3339(time) else {
        return String::new();
    };
    let age = (now - time.to_utc()).max(TimeDelta::zero());
    match (age.num_days(), age.num_hours(), age.num_minutes()) {
        (0, 0, 0) => format!("{} s ago", age.num_seconds()),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (days, ..) => format!("{days} d ago"),
    }
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

    #[test]
    fn ages_have_one_unit() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        for (time, shown) in [
            ("2026-11-21T12:00:09Z", "0 s ago"),
            ("2026-11-21T11:58:01Z", "1 min ago"),
            ("2026-11-20T12:00:01Z", "23 h ago"),
            ("no time", ""),
        ] {
            assert_eq!(age(time, now), shown);
        }
    }
}
