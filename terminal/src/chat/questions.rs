//! Questions to a person about a waiting call, and the meaning of the answers. No I/O.

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
    };
    let mut lines = vec![Line::of(&what, Style::Warn)];
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

/// Returns the help text for the keys.
pub(super) fn keys(question: &Question) -> &'static str {
    match question.wants {
        Wants::Approval => {
            "a approve · e edit · d deny · D deny with a reason · A always in this conversation"
        }
        Wants::Consent { .. } => "y run it · n do not · r type a result",
        Wants::Result => "r type a result · n refuse",
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
        (Wants::Approval, 'a' | 'y') => Some(approve(false)),
        (Wants::Approval, 'A') => Some(approve(true)),
        (Wants::Approval, 'd' | 'n') | (Wants::Consent { .. } | Wants::Result, 'n') => Some(deny()),
        (Wants::Approval, 'D') => Some(Choice::Reason),
        (Wants::Approval, 'e') => Some(Choice::Edit),
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

/// Parses the user's arguments.
pub(super) fn arguments(text: &str) -> Result<Answer, String> {
    let input =
        Edited::parse(text).map_err(|error| format!("the text is not a JSON object: {error}"))?;
    Ok(Answer::Approve {
        input: Some(input),
        remember: false,
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
        assert!(arguments("[1]").unwrap_err().contains("not a JSON object"));
        assert_eq!(result("{\"a\":1}"), Answer::Result(json!({"a": 1})));
        assert_eq!(result("done it"), Answer::Result(json!("done it")));
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
