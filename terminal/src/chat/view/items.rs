//! The items of a conversation as rows. No I/O.

use everturn_client::state::{
    ApprovalState, CallState, Citation, End, EndKind, FinishReason, Item, ItemKind, PlanStep,
    PlanStepStatus, ToolCall, ToolResult, WorkPlan,
};
use everturn_proto::words::EventType;
use serde_json::Value;

use super::{
    line::{Line, Style},
    look::Look,
    markdown,
};
use crate::show;

/// The most rows of a thought's reasoning.
const THOUGHT_ROWS: usize = 3;

/// The most characters of a tool's input or output.
const VALUE_CHARS: usize = 300;

/// The clock of the display.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::chat) struct Now {
    /// Milliseconds since 1970.
    pub(in crate::chat) ms: i64,
    /// The number of the spinner's frame.
    pub(in crate::chat) tick: usize,
}

/// The frames of a spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Now {
    /// Returns the current frame of the spinner.
    pub(in crate::chat) fn spinner(self) -> &'static str {
        SPINNER[self.tick % SPINNER.len()]
    }
}

/// Returns the rows of an item at a nesting depth of sub-agents. `started` is the start of the item's turn, in
/// milliseconds since 1970.
pub(super) fn rows(
    item: &Item,
    depth: usize,
    look: &Look,
    now: Now,
    started: Option<i64>,
) -> Vec<Line> {
    let inner = look.inner(depth);
    let rows = match &item.kind {
        ItemKind::UserMessage {
            content,
            attachments,
            retry_of,
        } => match retry_of {
            None => user(content, attachments.as_ref(), &inner),
            Some(_) => note(show::RETRIED, &inner),
        },
        ItemKind::Thought {
            content,
            reasoning,
            citations: _,
        } => {
            let mut rows = reasoning
                .as_deref()
                .map_or_else(Vec::new, |it| thought(it, &inner));
            if !content.trim().is_empty() {
                rows.extend(answer(content, &inner));
            }
            rows.extend(sources(&item.kind, &inner));
            rows
        }
        ItemKind::ToolCall(call) => tool_call(call, item.timestamp, &inner, now),
        ItemKind::ToolResult(result) => tool_result(result, &inner),
        ItemKind::AssistantMessage {
            content,
            partial,
            finish,
            citations: _,
        } => {
            let mut rows = answer(content, &inner);
            rows.extend(sources(&item.kind, &inner));
            match finish.as_ref().filter(|it| **it != FinishReason::Stop) {
                _ if *partial => rows.push(Line::of("(the answer so far)", Style::Dim)),
                Some(finish) => {
                    rows.push(Line::of(&format!("(it ends with: {finish})"), Style::Dim));
                }
                None => {}
            }
            rows
        }
        ItemKind::WorkPlan(plan) => work_plan(plan, &inner),
        ItemKind::Note { event, data } => {
            let event_type = EventType::from(event.as_str());
            let about = show::about(&event_type, &Value::Object(data.clone()));
            let words = event.as_str().replace('_', " ");
            note(&format!("{words} · {about}"), &inner)
        }
        ItemKind::End(end) if depth > 0 => sub_agent_end(end, &inner),
        ItemKind::End(end) => turn_end(end, started.map(|at| item.timestamp - at), &inner),
    };
    indented(rows, depth)
}

/// Indents the rows of a sub-agent under the sub-agent's call.
pub(super) fn indented(rows: Vec<Line>, depth: usize) -> Vec<Line> {
    if depth == 0 {
        return rows;
    }
    let before = Line::of(&"  │ ".repeat(depth), Style::Dim);
    let rows = rows.into_iter();
    rows.map(|row| Line(before.0.iter().cloned().chain(row.0).collect()))
        .collect()
}

/// Returns a dimmed row.
pub(in crate::chat) fn note(text: &str, look: &Look) -> Vec<Line> {
    hung(&Line::of(&format!("· {text}"), Style::Dim), 2, look)
}

/// Returns the rows of a user's message.
pub(super) fn user(content: &str, attachments: Option<&Value>, look: &Look) -> Vec<Line> {
    let mut rows = Vec::new();
    let before = Line::of("you> ", Style::Heading);
    let indent = Line::of("     ", Style::Plain);
    for line in content.split('\n') {
        let first = if rows.is_empty() { &before } else { &indent };
        let line = Line::of(line, Style::Bold);
        rows.extend(line.wrapped(look.width, first, &indent));
    }
    for file in attachments.and_then(Value::as_array).into_iter().flatten() {
        let name = file["file_name"]
            .as_str()
            .unwrap_or("a file without a name");
        rows.push(Line::of(&format!("     [{name}]"), Style::Dim).cut(look.width));
    }
    rows
}

/// Returns the rows of a model's complete text.
pub(super) fn answer(content: &str, look: &Look) -> Vec<Line> {
    if look.has_markdown {
        return markdown::rows(content, look.width);
    }
    raw(content, Style::Plain, look)
}

/// Returns the rows of a text without Markdown.
pub(super) fn raw(content: &str, style: Style, look: &Look) -> Vec<Line> {
    let none = Line::default();
    let lines = content.trim_end_matches('\n').split('\n');
    lines
        .flat_map(|line| Line::of(line, style).wrapped(look.width, &none, &none))
        .collect()
}

/// Returns a row for each source that a text cites.
pub(super) fn sources(kind: &ItemKind, look: &Look) -> Vec<Line> {
    let (ItemKind::Thought { citations, .. } | ItemKind::AssistantMessage { citations, .. }) = kind
    else {
        return Vec::new();
    };
    let numbered = citations.iter().flatten().zip(1..);
    let source = |(citation, number): (&Citation, usize)| {
        let parts = [citation.title.as_deref(), citation.url.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        note(&format!("[{number}] {}", parts.join(" · ")), look)
    };
    numbered.flat_map(source).collect()
}

fn thought(reasoning: &str, look: &Look) -> Vec<Line> {
    let mut rows = note(reasoning.trim(), look);
    if rows.len() > THOUGHT_ROWS {
        rows.truncate(THOUGHT_ROWS);
        if let Some(last) = rows.last_mut() {
            last.push(" …", Style::Dim);
        }
    }
    rows
}

fn tool_call(call: &ToolCall, begun: i64, look: &Look, now: Now) -> Vec<Line> {
    let waits = call.is_waiting();
    let (mark, style) = match call.state {
        CallState::Running if waits => ("◆", Style::Warn),
        CallState::Running if look.is_live => (now.spinner(), Style::Heading),
        CallState::Running => ("→", Style::Plain),
        CallState::Done => ("✓", Style::Good),
        CallState::Failed => ("✗", Style::Bad),
        CallState::Unknown => ("?", Style::Warn),
    };
    let name = call.title.as_ref().unwrap_or(&call.tool_name);
    let mut line = Line::of(&format!("{mark} "), style).and(name, Style::Bold);
    match &call.sub_agent {
        Some(agent) if call.title.is_some() => {
            line.push(&format!(": {}", short(&agent.task)), Style::Plain);
        }
        None if call.title.is_some() => line.push(&format!(" · {}", call.tool_name), Style::Dim),
        Some(agent) => line.push(
            &format!(" → {}: {}", agent.agent, short(&agent.task)),
            Style::Plain,
        ),
        None if call.tool_input.is_null() => {}
        None => line.push(
            &format!(" {}", short(&call.tool_input.to_string())),
            Style::Plain,
        ),
    }
    let result = call.result.as_ref();
    let time = match (call.state, result.and_then(|result| result.duration_ms)) {
        (CallState::Running, _) => running_for(now.ms - begun).filter(|_| begun > 0),
        (_, ms) => ms.map(duration),
    };
    if let Some(time) = time {
        line.push(&format!("  {time}"), Style::Dim);
    }
    line.push(&what_about_it(call, waits), Style::Dim);
    let mut rows = vec![line.cut(look.width)];
    if let Some(result) = result.filter(|_| call.sub_agent.is_none()) {
        rows.push(output(&result.tool_output, result.is_error, look));
    }
    rows
}

/// Returns notes about a call besides its state.
fn what_about_it(call: &ToolCall, waits: bool) -> String {
    let mut about = Vec::new();
    if let Some(hook) = &call.hook {
        about.push(format!("hook {hook}"));
    }
    let approval = call.approval.as_ref();
    if let Some(approval) = approval.filter(|it| it.state != ApprovalState::Pending) {
        let mut how = vec![approval.state.to_string()];
        if approval.edited == Some(true) {
            how.push("with another input".to_owned());
        }
        how.extend(approval.resolved_by.as_ref().map(|by| format!("by {by}")));
        let how = how.join(" ");
        about.push(match &approval.reason {
            Some(reason) => format!("{how}: {reason}"),
            None => how,
        });
    }
    match (waits, call.client_tool.is_some(), call.state) {
        (true, true, _) => about.push("waits for a client".to_owned()),
        (true, false, _) if approval.is_some_and(|it| it.question.is_some()) => {
            about.push("waits for an answer".to_owned());
        }
        (true, false, _) => about.push("waits for approval".to_owned()),
        (_, _, CallState::Unknown) => about.push("it may or may not have happened".to_owned()),
        _ => {}
    }
    dotted(&about)
}

fn tool_result(result: &ToolResult, look: &Look) -> Vec<Line> {
    let (mark, style) = if result.outcome_unknown {
        ("? ", Style::Warn)
    } else if result.is_error {
        ("✗ ", Style::Bad)
    } else {
        ("✓ ", Style::Good)
    };
    let mut line = Line::of(mark, style).and(&result.tool_name, Style::Bold);
    if let Some(ms) = result.duration_ms {
        line.push(&format!("  {}", duration(ms)), Style::Dim);
    }
    vec![
        line.cut(look.width),
        output(&result.tool_output, result.is_error, look),
    ]
}

fn output(value: &Value, is_error: bool, look: &Look) -> Line {
    let text = match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let style = if is_error { Style::Bad } else { Style::Dim };
    let line = Line::of("  └ ", Style::Dim).and(&short(&text), style);
    line.cut(look.width)
}

fn work_plan(plan: &WorkPlan, look: &Look) -> Vec<Line> {
    let mut rows = vec![Line::of(&plan.title, Style::Bold).cut(look.width)];
    rows.extend(
        plan.steps
            .iter()
            .map(|step| plan_step(step).cut(look.width)),
    );
    rows
}

fn plan_step(step: &PlanStep) -> Line {
    let (mark, style, text_style) = match step.status {
        PlanStepStatus::Completed => ("☑", Style::Good, Style::Dim),
        PlanStepStatus::Running => ("▶", Style::Heading, Style::Bold),
        PlanStepStatus::Failed => ("☒", Style::Bad, Style::Plain),
        PlanStepStatus::Pending | PlanStepStatus::Unknown(_) => ("☐", Style::Plain, Style::Plain),
    };
    Line::of(&format!("  {mark} "), style).and(&step.description, text_style)
}

fn sub_agent_end(end: &End, look: &Look) -> Vec<Line> {
    match end.outcome {
        EndKind::Complete => Vec::new(),
        EndKind::Error | EndKind::Cancelled => turn_end(end, None, look),
    }
}

fn turn_end(end: &End, took_ms: Option<i64>, look: &Look) -> Vec<Line> {
    let mut line = match end.outcome {
        EndKind::Complete => Line::of("✓ done", Style::Good),
        EndKind::Error => Line::of("✗ failed", Style::Bad),
        EndKind::Cancelled => Line::of("■ cancelled", Style::Warn),
    };
    let code = end.code.as_deref();
    let code = code.filter(|_| end.outcome == EndKind::Error);
    if let Some(code) = code {
        line.push(&format!(": {code}"), Style::Bad);
    }
    if let Some(reason) = &end.reason {
        line.push(&format!(": {reason}"), Style::Plain);
    }
    line.push(&what_it_took(end, took_ms), Style::Dim);
    let mut rows = hung(&line, 2, look);
    if let Some(message) = &end.message {
        let message = Line::of(&format!("  {message}"), Style::Plain);
        rows.extend(hung(&message, 2, look));
    }
    if let Some(code) = code {
        let page = format!("  What to do: {}/docs/errors/{code}", look.gateway);
        rows.extend(hung(&Line::of(&page, Style::Dim), 2, look));
    }
    rows
}

/// Returns steps, tokens, money and time, as far as known.
fn what_it_took(end: &End, took_ms: Option<i64>) -> String {
    let mut took: Vec<String> = Vec::new();
    took.extend(end.steps.map(|steps| counted(steps, "step")));
    let about = show::about_mark(end.usage.as_ref());
    let tokens = |key: &str| end.usage.as_ref().and_then(|usage| usage[key].as_u64());
    if let (Some(input), Some(output)) = (tokens("input_tokens"), tokens("output_tokens")) {
        took.push(format!("{about}{input} + {output} tokens"));
    }
    took.extend(end.cost_usd.as_ref().map(|cost| format!("{about}${cost}")));
    let ms = took_ms.and_then(|ms| u64::try_from(ms).ok());
    took.extend(ms.map(duration));
    dotted(&took)
}

/// Wraps a line. All rows after the first are indented.
fn hung(line: &Line, columns: usize, look: &Look) -> Vec<Line> {
    let indent = Line::of(&" ".repeat(columns), Style::Plain);
    line.wrapped(look.width, &Line::default(), &indent)
}

/// Returns the beginning of a value.
fn short(text: &str) -> String {
    let line = text.replace(char::is_control, " ");
    match line.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Formats a duration for people.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Returns the running time of a call in whole seconds. The clocks of two machines do not agree more precisely.
fn running_for(ms: i64) -> Option<String> {
    let seconds = u64::try_from(ms).ok()? / 1000;
    Some(match seconds {
        0..60 => format!("{seconds} s"),
        _ => duration(seconds * 1000),
    })
}

/// Joins remarks for the end of a line, with a dot before each.
fn dotted(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        parts => format!(" · {}", parts.join(" · ")),
    }
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
