//! Tool results in words.

use serde_json::Value;

use super::{rules::WHO, wire::Message};

const MAX_RESULT_CHARS: usize = 300;

/// What became of one call.
#[derive(Debug)]
pub(super) struct Outcome {
    tool: String,
    arguments: Value,
    result: Result<Value, String>,
}

/// The calls of a turn that have results, in their order.
pub(super) fn outcomes(turn: &[Message]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for call in turn.iter().flat_map(|message| &message.tool_calls) {
        let answers = turn
            .iter()
            .filter(|message| message.role == "tool" && message.tool_call_id == call.id);
        if let Some(result) = answers.map(Message::text).next_back() {
            outcomes.push(Outcome {
                tool: call.function.name.clone(),
                arguments: serde_json::from_str(&call.function.arguments).unwrap_or_default(),
                result: read(&result),
            });
        }
    }
    outcomes
}

/// The answer that these outcomes make.
pub(super) fn compose(outcomes: &[Outcome]) -> String {
    let mut sentences: Vec<String> = outcomes.iter().map(Outcome::sentence).collect();
    sentences.push(format!("({WHO})"));
    sentences.join(" ")
}

/// A result as a tool message has it: JSON, or an error in words or in JSON.
fn read(text: &str) -> Result<Value, String> {
    let (is_error, rest) = text
        .strip_prefix("Error:")
        .map_or((false, text), |rest| (true, rest.trim()));
    let value = serde_json::from_str(rest).unwrap_or_else(|_| Value::String(rest.to_owned()));
    match (is_error, value.get("error").and_then(Value::as_str)) {
        (_, Some(reason)) => Err(reason.to_owned()),
        (true, None) => Err(plain(&value)),
        (false, None) => Ok(value),
    }
}

impl Outcome {
    fn sentence(&self) -> String {
        let asked = |key: &str| self.arguments.get(key).map(plain).unwrap_or_default();
        let words = match (self.tool.as_str(), &self.result) {
            ("calculate", Ok(result)) => calculated(result),
            ("calculate", Err(reason)) => Some(format!(
                "I could not calculate {}: {}",
                asked("expression"),
                end(reason)
            )),
            ("current_time", Ok(result)) => time(result),
            ("current_time", Err(reason)) => Some(format!(
                "I could not look up the time in {}: {}",
                asked("time_zone"),
                end(reason)
            )),
            ("work_plan", Ok(result)) => plan(result),
            (_, Err(reason)) => Some(format!("The tool `{}` failed: {}", self.tool, end(reason))),
            (_, Ok(_)) => None,
        };
        words.unwrap_or_else(|| {
            let result = self.result.as_ref().map_or_else(Clone::clone, plain);
            format!("The tool `{}` returned: {}", self.tool, end(&result))
        })
    }
}

fn calculated(result: &Value) -> Option<String> {
    Some(format!(
        "{} = {}.",
        result.get("expression")?.as_str()?,
        result.get("value")?.as_str()?
    ))
}

fn time(result: &Value) -> Option<String> {
    let zone = result.get("time_zone")?.as_str()?;
    let place = zone.rsplit('/').next().unwrap_or(zone).replace('_', " ");
    // RFC 3339: 2026-08-01T05:30:05+09:00
    let (date, time) = result.get("time")?.as_str()?.split_once('T')?;
    let weekday = result.get("weekday")?.as_str()?;
    Some(format!(
        "In {place} it is {} on {weekday}, {date} ({zone}).",
        time.get(..5)?
    ))
}

fn plan(result: &Value) -> Option<String> {
    let step = |step: &Value| {
        let number = step.get("step_number")?.as_u64()?;
        Some(format!("{number}. {}", step.get("description")?.as_str()?))
    };
    let steps: Vec<String> = result
        .get("steps")?
        .as_array()?
        .iter()
        .filter_map(step)
        .collect();
    Some(format!(
        "I made the plan “{}”: {}.",
        result.get("title")?.as_str()?,
        steps.join("; ")
    ))
}

/// A text without the quotes of JSON, of bounded length.
fn plain(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(MAX_RESULT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// With a full stop, unless it already has an end.
fn end(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?', '…', '}', ']']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
