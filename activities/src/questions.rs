//! The questions of running tools to a person: the limits of a question, and its form in the store.
//!
//! A tool asks, the activity stores the question and ends, and the turn waits. After the answer the turn runs the tool again.
//! Must not be here: who may answer, and the request in the event log (the store).

use std::time::Duration;

use everturn_proto::{
    Json, ids,
    turn::{AskedQuestion, RunToolResult, WaitingQuestion},
    words::{ApprovalState, ToolStatus},
};
use everturn_tools::{Answer, Answered, Form, Question};

/// The longest message of a question, in bytes: some pages of text, which a person must read.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// The longest address to open, in bytes.
const MAX_URL_BYTES: usize = 4 * 1024;
/// The largest form of a question, in bytes: far more fields than a person fills in.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// The largest notes of a tool, in bytes. The store keeps the notes until the end of the call.
const MAX_NOTES_BYTES: usize = 64 * 1024;

/// The limits of the questions of a tool.
#[derive(Debug, Clone, Copy)]
pub struct QuestionLimits {
    /// The most questions of a call.
    pub most: u32,
    /// The time to wait for an answer.
    pub timeout: Duration,
}

impl QuestionLimits {
    /// Returns the question in the form of the store, or a sentence for the model about the exceeded limit. `last` is the
    /// last question of the call.
    pub(crate) fn asked(
        &self,
        question: Question,
        last: Option<&AskedQuestion>,
    ) -> Result<AskedQuestion, String> {
        let number = last.map_or(0, |last| last.number).saturating_add(1);
        if number > self.most {
            let most = self.most;
            return Err(format!(
                "The tool asked a person more than {most} times (`max_questions`), and was not called again."
            ));
        }
        let refuse = |part: &str| {
            Err(format!(
                "The tool asked a person, and {part} of the question is too large or cannot be stored. Nobody was asked."
            ))
        };
        if !is_storable(&Json::of(&question.message), MAX_MESSAGE_BYTES) {
            return refuse("the message");
        }
        let (schema, url) = match question.form {
            Form::Fields(schema) if is_storable(&schema, MAX_FORM_BYTES) => (Some(schema), None),
            Form::Url(url) if is_storable(&Json::of(&url), MAX_URL_BYTES) => (None, Some(url)),
            Form::Fields(_) => return refuse("the form"),
            Form::Url(_) => return refuse("the address"),
        };
        if !is_storable(&question.notes, MAX_NOTES_BYTES) {
            return refuse("the tool's note");
        }
        Ok(AskedQuestion {
            number,
            message: question.message,
            schema,
            url,
            timeout_s: u32::try_from(self.timeout.as_secs()).unwrap_or(u32::MAX),
            notes: Some(question.notes),
            decision: None,
            answer: None,
        })
    }
}

/// True for a value within the limit that every database stores unchanged.
fn is_storable(value: &Json, max_bytes: usize) -> bool {
    value.stored_len() <= max_bytes && !value.is_too_deep() && value.made_storable().is_none()
}

/// Returns the answer to a stored question, for the tool; `None` before the answer.
pub(crate) fn answered(question: &AskedQuestion) -> Option<Answered> {
    let answer = match ApprovalState::from(question.decision.as_deref()?) {
        ApprovalState::Approved => Answer::Given(question.answer.clone().unwrap_or_else(no_fields)),
        _ => Answer::Declined,
    };
    Some(Answered {
        number: question.number,
        notes: question.notes.clone().unwrap_or_default(),
        answer,
    })
}

fn no_fields() -> Json {
    Json::of(&serde_json::Map::new())
}

/// Returns the result of an activity whose question is stored.
pub(crate) fn waits(execution_id: &str, question: &AskedQuestion) -> RunToolResult {
    RunToolResult {
        status: ToolStatus::Pending.into(),
        observed: false,
        question: Some(WaitingQuestion {
            input_hash: ids::question_hash(execution_id, question),
            timeout_s: question.timeout_s,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QuestionLimits = QuestionLimits {
        most: 2,
        timeout: Duration::from_secs(60),
    };

    fn question(message: &str) -> Question {
        Question {
            message: message.to_owned(),
            form: Form::Fields(Json::parse(r#"{"type":"object"}"#).unwrap()),
            notes: Json::of(&"n"),
        }
    }

    #[test]
    fn a_question_has_the_next_number_up_to_the_limit() {
        let first = LIMITS.asked(question("a"), None).unwrap();
        let second = LIMITS.asked(question("b"), Some(&first)).unwrap();
        assert_eq!((first.number, second.number, second.timeout_s), (1, 2, 60));
        let third = LIMITS.asked(question("c"), Some(&second)).unwrap_err();
        assert!(third.contains("more than 2 times"), "{third}");
        let hash = |asked: &AskedQuestion| ids::question_hash("e", asked);
        let same = LIMITS.asked(question("a"), Some(&first)).unwrap();
        assert_ne!(hash(&first), hash(&same));
    }

    #[test]
    fn a_question_that_no_database_keeps_is_asked_nobody() {
        let notes = |notes: Json| Question {
            notes,
            ..question("a")
        };
        let url = |url: String| Question {
            form: Form::Url(url),
            ..question("a")
        };
        for (asks, part) in [
            (question("a\0"), "the message"),
            (question(&"a".repeat(MAX_MESSAGE_BYTES)), "the message"),
            (url("a".repeat(MAX_URL_BYTES)), "the address"),
            (notes(Json::of(&"\0")), "the tool's note"),
            (
                notes(Json::of(&"n".repeat(MAX_NOTES_BYTES))),
                "the tool's note",
            ),
        ] {
            let refused = LIMITS.asked(asks, None).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn the_tool_gets_the_answer_with_its_notes() {
        let asked = LIMITS.asked(question("a"), None).unwrap();
        assert_eq!(answered(&asked), None);
        let decided = |decision: ApprovalState, answer: Option<&str>| AskedQuestion {
            decision: Some((&decision).into()),
            answer: answer.map(|text| Json::parse(text).unwrap()),
            ..asked.clone()
        };
        let answer = |question: &AskedQuestion| answered(question).unwrap().answer;
        let given = decided(ApprovalState::Approved, Some(r#"{"a":1}"#));
        let fields = Json::parse(r#"{"a":1}"#).unwrap();
        assert_eq!(answer(&given), Answer::Given(fields));
        let opened = decided(ApprovalState::Approved, None);
        assert_eq!(answer(&opened), Answer::Given(no_fields()));
        let declined = decided(ApprovalState::Declined, None);
        assert_eq!(answer(&declined), Answer::Declined);
        assert_eq!(answered(&declined).unwrap().notes, Json::of(&"n"));
    }
}
