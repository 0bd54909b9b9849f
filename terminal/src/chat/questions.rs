//! Questions to a person about a waiting call, and the meaning of the answers. No I/O.

use everturn_client::state::Question as Asked;
use serde_json::Value;

use super::{
    edited::Edited,
    session::{Answer, Question, Wants},
    view::{Line, Style},
};

/// The choice of a key or a line.
#[derive(Debug, PartialEq)]
pub(super) enum Choice {
    /// A complete answer.
    Answer(Answer),
    /// The user wants to edit the arguments.
    Edit,
    /// The user wants to type the result.
    Result,
    /// The user wants to type a reason for the denial.
    Reason,
}

/// Returns the rows of a question, with the whole input of the call. The input is the store's text, which runs: neither
/// shortened nor written anew, because a person must see the input itself before an approval.
pub(super) fn asked(question: &Question, command: Option<&str>) -> Vec<Line> {
    let tool = match &question.title {
        Some(title) => format!("{title} ({})", question.tool_name),
        None => question.tool_name.clone(),
    };
    let what = match &question.wants {
        Wants::Approval => format!("◆ {tool} needs your approval:"),
        Wants::Consent { .. } => {
            let command = command.unwrap_or_default();
            format!("◆ {tool} wants to run here, with `{command}`:")
        }
        Wants::Result => format!("◆ {tool} is to be run by a client, and no --tool offers it:"),
        Wants::Answer(_) => format!("◆ {tool} asks you:"),
    };
    let mut lines = vec![Line::of(&what, Style::Warn)];
    if let Wants::Answer(asked) = &question.wants {
        lines.extend(words(asked));
        return lines;
    }
    lines.push(Line::of(
        &format!("    {}", question.input_text),
        Style::Code,
    ));
    if question.wants == (Wants::Consent { is_old: true }) {
        let note = "  The call is older than this chat, and another client may have run the tool.";
        lines.push(Line::of(note, Style::Dim));
    }
    lines
}

/// Returns the rows of a tool's question: the words of the tool's server, and the fields or the address.
fn words(asked: &Asked) -> Vec<Line> {
    let row = |text: &str, style| Line::of(&format!("    {text}"), style);
    let mut rows: Vec<_> = asked
        .message
        .lines()
        .map(|line| row(line, Style::Plain))
        .collect();
    if let Some(url) = &asked.url {
        rows.push(row(&format!("Open this address: {url}"), Style::Code));
    }
    let schema = asked.schema.as_ref();
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    for (name, property) in properties.into_iter().flatten() {
        let text = |key: &str| property[key].as_str().unwrap_or_default().to_owned();
        let parts = [
            name.clone(),
            text("type"),
            text("title"),
            text("description"),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        rows.push(row(&parts.join(" · "), Style::Dim));
    }
    rows
}

/// Returns the help text for the keys.
pub(super) fn keys(question: &Question) -> &'static str {
    match &question.wants {
        Wants::Approval => {
            "a approve · e edit · d deny · D deny with a reason · A always in this conversation"
        }
        Wants::Consent { .. } => "y run it · n do not · r type a result",
        Wants::Result => "r type a result · n refuse",
        Wants::Answer(Asked { url: Some(_), .. }) => {
            "a I have done this · d decline · D decline with a reason"
        }
        Wants::Answer(_) => "a answer · d decline · D decline with a reason",
    }
}

/// Returns the meaning of a key, if it has one.
pub(super) fn of_key(question: &Question, key: char) -> Option<Choice> {
    let deny = || Choice::Answer(Answer::Deny(String::new()));
    let approve = |remember| {
        Choice::Answer(Answer::Approve {
            input: None,
            remember,
        })
    };
    match (&question.wants, key) {
        (Wants::Approval | Wants::Answer(Asked { url: Some(_), .. }), 'a' | 'y') => {
            Some(approve(false))
        }
        (Wants::Approval, 'A') => Some(approve(true)),
        (Wants::Answer(_), 'a' | 'e') | (Wants::Approval, 'e') => Some(Choice::Edit),
        (Wants::Approval | Wants::Answer(_), 'd' | 'n')
        | (Wants::Consent { .. } | Wants::Result, 'n') => Some(deny()),
        (Wants::Approval | Wants::Answer(_), 'D') => Some(Choice::Reason),
        (Wants::Consent { .. }, 'y') => Some(Choice::Answer(Answer::Run)),
        (Wants::Consent { .. } | Wants::Result, 'r') => Some(Choice::Result),
        _ => None,
    }
}

/// Returns the meaning of a line, for input by lines: the line's first character, or a word.
pub(super) fn of_line(question: &Question, line: &str) -> Option<Choice> {
    let key = match line.trim() {
        "yes" => 'y',
        "no" => 'n',
        "always" => 'A',
        "edit" => 'e',
        other => {
            let mut chars = other.chars();
            chars.next().filter(|_| chars.next().is_none())?
        }
    };
    of_key(question, key)
}

/// Parses the user's arguments, or the user's fields of a form.
pub(super) fn arguments(question: &Question, text: &str) -> Result<Answer, String> {
    let object =
        Edited::parse(text).map_err(|error| format!("the text is not a JSON object: {error}"))?;
    Ok(match question.wants {
        Wants::Answer(_) => Answer::Fields(object),
        Wants::Approval | Wants::Consent { .. } | Wants::Result => Answer::Approve {
            input: Some(object),
            remember: false,
        },
    })
}

/// Parses the user's result as JSON. Other input becomes a string.
pub(super) fn result(text: &str) -> Answer {
    let value = serde_json::from_str(text.trim());
    Answer::Result(value.unwrap_or_else(|_| Value::String(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(wants: Wants) -> Question {
        Question::of_test("exec_1", "pay", json!({"to": "a\u{202e}b"}), wants)
    }

    #[test]
    fn keys_and_words_answer() {
        let approval = question(Wants::Approval);
        let approve = |remember| {
            Some(Choice::Answer(Answer::Approve {
                input: None,
                remember,
            }))
        };
        assert_eq!(of_key(&approval, 'a'), approve(false));
        assert_eq!(of_line(&approval, " yes "), approve(false));
        assert_eq!(of_line(&approval, "always"), approve(true));
        assert_eq!(of_line(&approval, "all right"), None);
        assert_eq!(of_key(&approval, 'r'), None);
        let consent = question(Wants::Consent { is_old: false });
        assert_eq!(of_key(&consent, 'y'), Some(Choice::Answer(Answer::Run)));
        assert_eq!(
            of_key(&consent, 'a'),
            None,
            "a tool of the user's machine has its own key"
        );
        assert_eq!(of_key(&question(Wants::Result), 'y'), None);
        let refused = arguments(&approval, "[1]").unwrap_err();
        assert!(refused.contains("not a JSON object"), "{refused}");
        assert_eq!(result("{\"a\":1}"), Answer::Result(json!({"a": 1})));
        assert_eq!(result("done it"), Answer::Result(json!("done it")));
    }

    #[test]
    fn a_tools_question_is_answered_or_declined() {
        let schema = json!({"properties": {"day": {"type": "string", "title": "The day"}}});
        let form = Asked {
            message: "Which day?\nAny day.".to_owned(),
            schema: Some(schema),
            url: None,
        };
        let url = Asked {
            message: "Pay first.".to_owned(),
            schema: None,
            url: Some("https://pay.example/7".to_owned()),
        };
        let shown = |asked: &Asked| {
            let rows = super::asked(&question(Wants::Answer(asked.clone())), None);
            rows.iter().map(Line::text).collect::<Vec<_>>().join("\n")
        };
        let (form_rows, url_rows) = (shown(&form), shown(&url));
        assert!(form_rows.contains("Any day.") && form_rows.contains("day · string · The day"));
        assert!(url_rows.contains("https://pay.example/7"), "{url_rows}");
        let (form, url) = (question(Wants::Answer(form)), question(Wants::Answer(url)));
        assert_eq!(of_key(&form, 'a'), Some(Choice::Edit));
        assert!(matches!(
            of_key(&url, 'a'),
            Some(Choice::Answer(Answer::Approve { .. }))
        ));
        assert!(matches!(
            of_key(&form, 'd'),
            Some(Choice::Answer(Answer::Deny(_)))
        ));
        let fields = arguments(&form, r#"{"day":"Monday"}"#).unwrap();
        assert!(matches!(fields, Answer::Fields(_)), "{fields:?}");
    }

    #[test]
    fn what_will_run_is_shown_whole() {
        let long = "9".repeat(5000);
        let mut question = question(Wants::Approval);
        question.input_text = format!(r#"{{"long":{long},"to":"a{}b"}}"#, '\u{202e}');
        let shown: Vec<_> = asked(&question, None).iter().map(Line::text).collect();
        assert!(shown[0].contains("pay needs your approval"));
        assert!(shown.iter().any(|row| row.contains(&long)), "{shown:?}");
        assert!(
            shown.iter().any(|row| row.contains("a⟨202E⟩b")),
            "{shown:?}"
        );
    }
}
