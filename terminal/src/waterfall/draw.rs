//! Draws a turn as lines of a terminal.

use std::fmt::Write;

use everturn_client::state::{CallState, EndKind, Row, RowKind, TurnRows, WaitsFor};
use serde_json::Value;

use crate::show;

/// The widths of the label, of the time and of the text behind the bar, in columns.
const LABEL: usize = 30;
const TIME: usize = 9;
const BEHIND: usize = 28;

/// Returns the turn as text of `width` columns, with a line for each row.
pub(super) fn turn(turn: &TurnRows, now: i64, width: usize) -> String {
    let ended = turn.ended.unwrap_or(now).max(turn.started);
    let mut text = format!("turn {}\n  {}\n", turn.id, about(turn, ended));
    if let Some(said) = &turn.said {
        let said = clipped(&show::shortened(said), width.saturating_sub(4));
        let _ = writeln!(text, "  “{said}”");
    }
    let columns = width.saturating_sub(LABEL + TIME + BEHIND).max(16);
    let scale = Scale {
        from: turn.started,
        span: (ended - turn.started).max(1),
        columns,
    };
    for row in &turn.rows {
        let label = format!(
            "{}{}",
            "  ".repeat(row.depth + 1),
            show::shortened(&label(row))
        );
        let label = clipped(&label, LABEL);
        let row_ended = row.ended.unwrap_or(ended);
        let took = duration(row_ended - row.started);
        let behind = match (row.kind, remark(row)) {
            (RowKind::Note, _) => String::new(),
            (_, "") => took,
            (_, remark) => format!("{took}, {remark}"),
        };
        let at = duration(row.started - turn.started);
        let bar = scale.bar(row, row_ended);
        let line = format!("{label:<LABEL$}{at:>TIME$} {bar} {behind}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the outcome, the duration and the costs of the turn.
fn about(turn: &TurnRows, ended: i64) -> String {
    let mut parts = vec![
        show::shortened(outcome(turn)),
        duration(ended - turn.started),
    ];
    if let Some(end) = turn.how_ended() {
        parts.extend(end.steps.map(|steps| match steps {
            1 => "1 LLM call".to_owned(),
            steps => format!("{steps} LLM calls"),
        }));
        let about = show::about_mark(end.usage.as_ref());
        let usage = |name: &str| end.usage.as_ref()?.get(name).and_then(Value::as_u64);
        if let (Some(input), Some(output)) = (usage("input_tokens"), usage("output_tokens")) {
            parts.push(format!("{about}{input} tokens in, {output} out"));
        }
        parts.extend(
            end.cost_usd
                .as_ref()
                .map(|cost| format!("{about}{} USD", show::shortened(cost))),
        );
    }
    parts.join(" · ")
}

/// Returns `running`, or the outcome.
fn outcome(turn: &TurnRows) -> &str {
    match turn.how_ended() {
        Some(end) if end.outcome == EndKind::Error => end.code.as_deref().unwrap_or("error"),
        Some(end) => end.outcome.as_str(),
        None if turn.ended.is_none() => "running",
        None => "end not read",
    }
}

fn label(row: &Row) -> String {
    match (row.kind, &row.agent) {
        (RowKind::LlmCall, _) => format!("LLM call {}", row.step.unwrap_or_default()),
        (RowKind::Tool, Some(agent)) => format!("{} → {agent}", row.name),
        (RowKind::Tool, None) => row.name.clone(),
        (RowKind::Note, _) => row.name.replace('_', " "),
    }
}

/// Returns a remark behind the bar, like `failed`.
fn remark(row: &Row) -> &'static str {
    match (row.state, row.ran_from, row.waits_for) {
        (CallState::Running, None, Some(WaitsFor::Approval)) => "waits for approval",
        (CallState::Running, None, Some(WaitsFor::Client)) => "waits for a client",
        (CallState::Running, ..) => "running",
        (CallState::Done, ..) => "",
        (CallState::Failed, ..) => "failed",
        (CallState::Unknown, ..) => "outcome unknown",
    }
}

/// The time axis.
struct Scale {
    from: i64,
    span: i64,
    columns: usize,
}

impl Scale {
    /// Returns the column of a moment, from 0 to the number of columns.
    fn column(&self, moment: i64) -> usize {
        let since = (moment - self.from).clamp(0, self.span);
        let columns = i64::try_from(self.columns).unwrap_or(i64::MAX);
        usize::try_from(since.saturating_mul(columns) / self.span).unwrap_or(0)
    }

    /// Returns the bar of a row: light while the call waits, full while it runs. The bar has at least one character.
    fn bar(&self, row: &Row, ended: i64) -> String {
        let last = self.columns.saturating_sub(1);
        let from = self.column(row.started).min(last);
        let until = self.column(ended).clamp(from + 1, self.columns);
        let running = match row.ran_from {
            Some(ran_from) => self.column(ran_from).clamp(from, until - 1),
            None => until,
        };
        let full = match row.kind {
            RowKind::LlmCall => "█",
            RowKind::Tool => "▓",
            RowKind::Note => "◆",
        };
        let full_columns = if row.kind == RowKind::Note {
            1
        } else {
            until - running
        };
        let mut bar = " ".repeat(from);
        bar.push_str(&"░".repeat(running - from));
        bar.push_str(&full.repeat(full_columns));
        let rest = self.columns.saturating_sub(running + full_columns);
        bar.push_str(&" ".repeat(rest));
        bar
    }
}

/// Returns the text, cut to the number of columns.
fn clipped(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns.saturating_sub(1)) {
        Some((end, _)) if text.chars().nth(columns).is_some() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Formats milliseconds for people.
fn duration(milliseconds: i64) -> String {
    let milliseconds = milliseconds.max(0);
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{}.{:02} s", milliseconds / 1000, milliseconds % 1000 / 10),
        60_000..3_600_000 => {
            format!(
                "{} min {} s",
                milliseconds / 60_000,
                milliseconds % 60_000 / 1000
            )
        }
        _ => format!(
            "{} h {} min",
            milliseconds / 3_600_000,
            milliseconds % 3_600_000 / 60_000
        ),
    }
}

#[cfg(test)]
mod tests {
    use everturn_client::state::{Conversation, turn_rows};
    use serde_json::{Value, json};

    use super::*;

    /// Makes a conversation from the events of a turn, in order, with the second of every event.
    fn conversation(events: &[(u32, Value)]) -> Conversation {
        let mut conversation = Conversation::default();
        for ((second, data), number) in events.iter().zip(1..) {
            let mut data = data.clone();
            data["sequence_number"] = json!(number);
            data["created_at"] = json!(format!("2026-11-24T04:00:{second:02}Z"));
            if data["type"] != "assistant_message" {
                data["message_id"] = json!("msg_1");
            }
            conversation.apply(None, data);
        }
        conversation
    }

    fn act(name: &str, id: &str, agent: &str, step: u32) -> Value {
        json!({"type": "act", "tool_name": name, "execution_id": id, "call_id": id, "agent_execution_id": agent, "step": step})
    }

    fn observe(id: &str, duration_ms: u32, is_error: bool) -> Value {
        json!({"type": "observe", "execution_id": id, "duration_ms": duration_ms, "is_error": is_error, "result": 1})
    }

    fn drawn(conversation: &Conversation, now_second: i64) -> String {
        let turns = turn_rows(conversation.items(), conversation.turn());
        let now = 1_795_492_800_000 + now_second * 1000;
        let texts = turns.iter().map(|it| turn(it, now, 30 + 9 + 28 + 20));
        texts.collect()
    }

    #[test]
    fn calls_tools_and_sub_agents_are_on_one_axis() {
        let end = json!({"type": "complete", "steps": 3, "usage": {"input_tokens": 90, "output_tokens": 7}, "cost_usd": "0.01"});
        let conversation = conversation(&[
            (
                0,
                json!({"type": "user_message", "content": "Look it\u{1b}[2J up."}),
            ),
            (2, act("search", "e1", "run_1", 0)),
            (2, act("delegate", "e2", "run_1", 0)),
            (
                3,
                json!({"type": "sub_agent_start", "execution_id": "e2", "call_id": "e2", "agent_execution_id": "run_2", "agent": "reader", "task": "Read."}),
            ),
            (5, act("fetch", "e3", "run_2", 0)),
            (6, observe("e1", 1000, true)),
            (7, observe("e3", 2000, false)),
            (
                8,
                json!({"type": "assistant_message", "content": "Read.", "step": 1, "agent_execution_id": "run_2"}),
            ),
            (
                8,
                json!({"type": "complete", "agent_execution_id": "run_2"}),
            ),
            (8, observe("e2", 6000, false)),
            (
                10,
                json!({"type": "assistant_message", "content": "Done.", "step": 1, "agent_execution_id": "run_1"}),
            ),
            (10, end),
        ]);
        let expected = "\
turn msg_1
  complete · 10.00 s · 3 LLM calls · 90 tokens in, 7 out · 0.01 USD
  “Look it [2J up.”
  LLM call 0                       0 ms ████                 2.00 s
  search                         2.00 s     ░░░░░░▓▓         4.00 s, failed
  delegate → reader              2.00 s     ▓▓▓▓▓▓▓▓▓▓▓▓     6.00 s
    LLM call 0                   2.00 s     ██████           3.00 s
    fetch                        5.00 s           ▓▓▓▓       2.00 s
    LLM call 1                   7.00 s               ██     1.00 s
  LLM call 1                     8.00 s                 ████ 2.00 s
";
        assert_eq!(drawn(&conversation, 60), expected);
    }

    #[test]
    fn a_turn_that_runs_lasts_until_now() {
        let mut hook = act("recall", "e0", "run_1", 0);
        hook["hook"] = json!("before_turn");
        let conversation = conversation(&[
            (0, json!({"type": "user_message", "content": "Go."})),
            (0, hook),
            (1, observe("e0", 1000, false)),
            (5, act("deploy", "e1", "run_1", 1)),
            (
                5,
                json!({"type": "approval_requested", "execution_id": "e1"}),
            ),
        ]);
        let expected = "\
turn msg_1
  running · 20.00 s
  “Go.”
  recall                           0 ms ▓                    1.00 s
  LLM call 1                     1.00 s  ████                4.00 s
  deploy                         5.00 s      ░░░░░░░░░░░░░░░ 15.00 s, waits for approval
";
        assert_eq!(drawn(&conversation, 20), expected);
    }
}
