//! The rules: from a request to a reply.
//!
//! What a message asks for becomes tool calls, all in one reply; when results are there, they become the answer.

use serde_json::{Value, json};

use super::{
    answer, arithmetic, places,
    wire::{Call, Message, Reply, Request},
};

/// What it says of itself.
pub(super) const WHO: &str = "I am Everturn's demo model: a set of rules, not a language model.";
const MAX_ECHO_CHARS: usize = 200;
const MAX_PLAN_STEPS: usize = 10;

/// One thing that a message asks for.
struct Wish {
    tool: String,
    arguments: Value,
    /// Completes "I need to …".
    purpose: String,
}

/// The reply to a request.
pub(super) fn reply(request: &Request) -> Reply {
    let turn = current_turn(&request.messages);
    let outcomes = answer::outcomes(turn);
    let is_answered = turn.last().is_some_and(|message| message.role == "tool");
    if is_answered {
        return Reply {
            text: answer::compose(&outcomes),
            calls: Vec::new(),
        };
    }
    let said = turn
        .iter()
        .rev()
        .find(|message| message.role == "user")
        .map(Message::text)
        .unwrap_or_default();
    let (offered, missing): (Vec<Wish>, Vec<Wish>) = wishes(&said, request)
        .into_iter()
        .partition(|wish| request.offers(&wish.tool));
    if !offered.is_empty() {
        let purposes: Vec<&str> = offered.iter().map(|wish| wish.purpose.as_str()).collect();
        let call = |(index, wish): (usize, Wish)| Call {
            id: request.call_id(index),
            tool: wish.tool,
            arguments: wish.arguments,
        };
        let text = format!("I need to {}.", list(&purposes));
        return Reply {
            text,
            calls: offered.into_iter().enumerate().map(call).collect(),
        };
    }
    let text = if outcomes.is_empty() {
        explain(&said, request, missing.first())
    } else {
        // A message that joined a running turn and asks for nothing new.
        format!(
            "{} You also said: “{}”",
            answer::compose(&outcomes),
            echo(&said)
        )
    };
    Reply {
        text,
        calls: Vec::new(),
    }
}

/// The messages since the last answer: what the user said, and what was done about it so far.
fn current_turn(messages: &[Message]) -> &[Message] {
    let is_answer =
        |message: &Message| message.role == "assistant" && message.tool_calls.is_empty();
    let start = messages.iter().rposition(is_answer).map_or(0, |at| at + 1);
    &messages[start..]
}

fn wishes(said: &str, request: &Request) -> Vec<Wish> {
    let (mut wishes, said) = explicit_calls(said, request);
    wishes.extend(arithmetic::find(&said).into_iter().map(|expression| Wish {
        tool: "calculate".to_owned(),
        purpose: format!("calculate {expression}"),
        arguments: json!({"expression": expression}),
    }));
    wishes.extend(places::find(&said).into_iter().map(|place| Wish {
        tool: "current_time".to_owned(),
        purpose: format!("look up the time in {}", place.name),
        arguments: json!({"time_zone": place.zone}),
    }));
    wishes.extend(plan(&said));
    wishes
}

/// `call <tool> {…}` asks for any tool that is offered, in any number; returns the rest of the message as well.
fn explicit_calls(said: &str, request: &Request) -> (Vec<Wish>, String) {
    let (mut wishes, mut left) = (Vec::new(), String::new());
    let mut rest = said;
    while let Some(at) = places::word_at(rest, "call") {
        let (before, after) = (&rest[..at], rest[at + "call".len()..].trim_start());
        left.push_str(before);
        let name_end = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))
            .unwrap_or(after.len());
        let (name, arguments) = after.split_at(name_end);
        let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
        match values.next() {
            Some(Ok(arguments @ Value::Object(_))) if request.offers(name) => {
                wishes.push(Wish {
                    tool: name.to_owned(),
                    arguments,
                    purpose: format!("call {name}"),
                });
                rest = &after[name_end + values.byte_offset()..];
            }
            _ => {
                left.push_str("call ");
                rest = after;
            }
        }
    }
    left.push_str(rest);
    (wishes, left)
}

/// `plan <title>: <step>, <step> and <step>`, or any plan with three steps that always fit.
fn plan(said: &str) -> Option<Wish> {
    let lower = said.to_lowercase();
    // The words are ASCII; where lowering changes lengths, places in the two texts would differ.
    let said = if lower.len() == said.len() {
        said
    } else {
        lower.as_str()
    };
    let at = places::word_at(&lower, "plan")?;
    let wanted = said
        .get(at + "plan".len()..)?
        .trim_start_matches([':', ' '])
        .trim();
    let wanted = ["to ", "for ", "of "]
        .iter()
        .find_map(|word| wanted.strip_prefix(word))
        .unwrap_or(wanted);
    let (title, steps) = wanted.split_once(':').unwrap_or((wanted, ""));
    let title = title.trim().trim_end_matches(['.', '?', '!']);
    let title = if title.is_empty() {
        "What was asked for"
    } else {
        title
    };
    let title: String = title.chars().take(MAX_ECHO_CHARS).collect();
    let steps = steps
        .trim()
        .trim_end_matches(['.', '?', '!'])
        .replace(" then ", ",")
        .replace(" and ", ",");
    let mut steps: Vec<String> = steps
        .split([',', ';', '\n'])
        .map(|step| step.trim().chars().take(MAX_ECHO_CHARS).collect::<String>())
        .filter(|step| !step.is_empty())
        .take(MAX_PLAN_STEPS)
        .collect();
    if steps.is_empty() {
        steps = ["Find out what is needed", "Do it", "Check the result"]
            .map(str::to_owned)
            .to_vec();
    }
    Some(Wish {
        tool: "work_plan".to_owned(),
        purpose: "make a plan".to_owned(),
        arguments: json!({"action": "create", "title": title, "steps": steps}),
    })
}

/// What it can do with the tools it has, when a message asks for none of that.
fn explain(said: &str, request: &Request, missing: Option<&Wish>) -> String {
    let abilities = [
        ("calculate", "calculate (“What is 21 * 2?”)"),
        (
            "current_time",
            "tell the time (“What time is it in Tokyo?”)",
        ),
        (
            "work_plan",
            "make a plan (“Plan a picnic: buy bread, find a meadow”)",
        ),
    ];
    let abilities: Vec<&str> = abilities
        .iter()
        .filter(|(tool, _)| request.offers(tool))
        .map(|(_, ability)| *ability)
        .collect();
    let can = match abilities.len() {
        0 => "This agent gives me no tools I know, so I can only repeat what you say.".to_owned(),
        1 => format!("I can {}.", list(&abilities)),
        _ => format!("I can {}, and several of these at once.", list(&abilities)),
    };
    let missing = missing.map_or_else(String::new, |wish| {
        format!(
            " To {} I would need the tool `{}`, which this agent does not have.",
            wish.purpose, wish.tool
        )
    });
    format!("{WHO} {can}{missing} You said: “{}”", echo(said))
}

fn echo(said: &str) -> String {
    let said = said.trim();
    match said.char_indices().nth(MAX_ECHO_CHARS) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
