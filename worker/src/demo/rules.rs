//! The rules: a message's requests become tool calls in a single reply, and their results become the answer.

use std::collections::BTreeMap;

use chrono_tz::TZ_VARIANTS;
use serde_json::{Value, json};

use super::{
    introduction,
    own_tools::{self, Chosen},
    said,
    wire::{Call, Message, Reply, Request},
};

const SIGNATURE: &str = "(I am Everturn's demo model: a set of rules, not a language model.)";
/// The word before a call by name.
const CALL: &str = "call ";

/// Returns the reply to a request.
pub(super) fn reply(request: &Request) -> Reply {
    let turn = current_turn(&request.messages);
    let said = match turn.last() {
        Some(message) if message.role == "user" => message.text(),
        _ => String::new(),
    };
    let mut calls = named_calls(&said);
    if calls.is_empty() {
        calls = [sums(&said), times(&said), plan(&said)]
            .into_iter()
            .flatten()
            .collect();
    }
    calls.retain(|call| request.offers(&call.tool));
    let mut lacking = None;
    if calls.is_empty() {
        match own_tools::choose(request, &said) {
            Some(Chosen::Call(call)) => calls.push(call),
            Some(Chosen::Lacks(tool, missing)) => lacking = Some(lacks(&tool, &missing)),
            None => {}
        }
    }
    let results = results(turn);
    let text = if !calls.is_empty() {
        let purposes: Vec<_> = calls.iter().map(purpose).collect();
        format!("I need to {}.", purposes.join(" and "))
    } else if let Some(lacking) = lacking {
        format!("{results} {lacking}").trim_start().to_owned()
    } else if results.is_empty() {
        format!("{} You said: “{}”", introduction::of(request), echo(&said))
    } else if said.is_empty() {
        format!("{results} {SIGNATURE}")
    } else {
        // A message without a request joined the turn while its tools ran.
        format!("{results} {SIGNATURE} You also said: “{}”", echo(&said))
    };
    Reply { text, calls }
}

/// Returns the answer to a message without a needed argument.
fn lacks(tool: &str, missing: &[String]) -> String {
    let missing: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
    let missing = missing.join(" and ");
    format!("I would call {tool}, but your message has no value for {missing}. {SIGNATURE}")
}

/// Returns the messages since the last answer: the user's messages, and the calls with their results.
fn current_turn(messages: &[Message]) -> &[Message] {
    let is_answer =
        |message: &Message| message.role == "assistant" && message.tool_calls.is_empty();
    let start = messages.iter().rposition(is_answer).map_or(0, |at| at + 1);
    &messages[start..]
}

fn call(tool: &str, arguments: Value) -> Call {
    Call {
        tool: tool.to_owned(),
        arguments,
    }
}

/// Finds `call TOOL {…}`, any number of times.
fn named_calls(said: &str) -> Vec<Call> {
    let read = |after: &str| {
        let (tool, arguments) = after.split_at(after.find([' ', '{'])?);
        let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
        let arguments = values.next()?.ok().filter(Value::is_object)?;
        Some(call(tool, arguments))
    };
    said.match_indices(CALL)
        .filter_map(|(at, _)| read(&said[at + CALL.len()..]))
        .collect()
}

/// Finds arithmetic expressions, like `21 * 2` or `(1 + 2) / 3`. The tool computes their value.
fn sums(said: &str) -> Vec<Call> {
    said.split(|c: char| !(c.is_ascii_digit() || " .+-*/^()".contains(c)))
        .map(|run| run.trim_matches([' ', '.']))
        .filter(|run| is_sum(run))
        .map(|run| call("calculate", json!({"expression": run})))
        .collect()
}

fn is_sum(run: &str) -> bool {
    let parts = run.split(['+', '-', '*', '/', '^']).map(str::trim);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    let is_number = |part: &&str| part.ends_with(|c: char| c.is_ascii_digit() || c == ')');
    // 2026-07-31, 31/7/2026
    let is_date =
        parts.len() == 3 && !run.contains(' ') && parts.iter().any(|part| part.len() == 4);
    parts.len() > 1 && parts.iter().all(is_number) && !is_date
}

/// Finds `time` and the names of cities in IANA time zones, in the order of the message. Without a city, the zone is
/// UTC.
fn times(said: &str) -> Vec<Call> {
    let said = words(said);
    if !said.contains(" time ") {
        return Vec::new();
    }
    let mut found = BTreeMap::new();
    for zone in TZ_VARIANTS.iter().map(|zone| zone.name()) {
        if let Some(at) = said.find(&words(city(zone))) {
            found.entry(at).or_insert(zone);
        }
    }
    if found.is_empty() {
        found.insert(0, "UTC");
    }
    let time = |zone| call("current_time", json!({"time_zone": zone}));
    found.into_values().map(time).collect()
}

/// Returns `New_York` of `America/New_York`.
fn city(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

/// Returns the words in lower case, with a space around each word.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" ").to_lowercase())
}

/// Finds `plan TITLE: STEP, STEP`, up to the end of the sentence.
fn plan(said: &str) -> Vec<Call> {
    let mut sentences = said.split(['.', '?', '!']).map(str::trim);
    let wanted =
        sentences.find_map(|sentence| sentence.strip_prefix(['P', 'p'])?.strip_prefix("lan "));
    let Some((title, steps)) = wanted.and_then(|wanted| wanted.split_once(':')) else {
        return Vec::new();
    };
    let steps: Vec<_> = steps.split(',').map(str::trim).collect();
    let arguments = json!({"action": "create", "title": title.trim(), "steps": steps});
    vec![call("work_plan", arguments)]
}

/// Returns the purpose of a call. The purpose completes "I need to …" and "I could not …".
fn purpose(call: &Call) -> String {
    let argument = |key: &str| echo(call.arguments[key].as_str().unwrap_or_default());
    match call.tool.as_str() {
        "calculate" => format!("calculate {}", argument("expression")),
        "current_time" => {
            let zone = argument("time_zone");
            format!("look up the time in {}", city(&zone).replace('_', " "))
        }
        "work_plan" => "make a plan".to_owned(),
        tool => format!("call {tool}"),
    }
}

/// Returns the results of the turn's calls, a sentence for each result.
fn results(turn: &[Message]) -> String {
    let mut sentences = Vec::new();
    for asked in turn.iter().flat_map(|message| &message.tool_calls) {
        let arguments = serde_json::from_str(&asked.function.arguments).unwrap_or_default();
        let call = call(&asked.function.name, arguments);
        let results = turn
            .iter()
            .filter(|message| message.tool_call_id == asked.id);
        sentences.extend(results.map(|message| sentence(&call, &message.text())));
    }
    sentences.join(" ")
}

fn sentence(call: &Call, result: &str) -> String {
    let (is_error, text) = match result.strip_prefix("Error:") {
        Some(reason) => (true, reason.trim()),
        None => (false, result),
    };
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let field = |key: &str| value[key].as_str().unwrap_or_default();
    if is_error || !field("error").is_empty() {
        let reason = value["error"].as_str().unwrap_or(text);
        return format!("I could not {}: {}.", purpose(call), echo(reason));
    }
    match call.tool.as_str() {
        "calculate" => format!("{} = {}.", field("expression"), field("value")),
        "current_time" => {
            let zone = field("time_zone");
            let city = city(zone).replace('_', " ");
            // RFC 3339: 2026-08-01T05:30:05+09:00
            let (date, time) = field("time").split_once('T').unwrap_or_default();
            let (time, day) = (time.get(..5).unwrap_or_default(), field("weekday"));
            format!("In {city} it is {time} on {day}, {date} ({zone}).")
        }
        "work_plan" => format!("I made the plan “{}”.", field("title")),
        tool => format!("The tool `{tool}` returned: {}.", echo(&told(text, &value))),
    }
}

/// Returns a result as a text: the text of MCP servers without its JSON, and the fields of a flat object in a row.
fn told(text: &str, value: &Value) -> String {
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    };
    let told = match value {
        Value::Object(fields) if fields.len() == 1 => fields.get("result").and_then(plain),
        _ => None,
    };
    let fields = value.as_object().filter(|fields| !fields.is_empty());
    let row = || {
        let field = |(name, value)| Some(format!("{name}: {}", plain(value)?));
        let row: Option<Vec<String>> = fields?.iter().map(field).collect();
        Some(row?.join(", "))
    };
    told.or_else(row).unwrap_or_else(|| text.to_owned())
}

/// Returns the part of a text that an answer repeats: its beginning, without a full stop.
fn echo(text: &str) -> String {
    said::cut(text.trim().trim_end_matches('.'))
}
