//! Questions of running tools to a person: the question for people, and the check of the answer.

use everturn_proto::{
    Json as RawJson,
    turn::{AskedQuestion, ResolveApproval},
    words::Decision,
};
use everturn_untrusted::Schema;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::{Code, Problem};

/// A question of a running tool. The person fills in a form, or opens an address.
#[derive(Serialize, ToSchema)]
#[schema(as = Question)]
pub(super) struct QuestionBody {
    /// Words of the tool's server. Show them as text.
    message: String,
    /// Form of the answer: the JSON Schema of an object with flat properties. Absent for a question with a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    schema: Option<RawJson>,
    /// Address that the person must open before the answer. Show the host, and open no address without the person's word.
    /// Absent for a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    url: Option<String>,
}

impl From<&AskedQuestion> for QuestionBody {
    fn from(question: &AskedQuestion) -> Self {
        Self {
            message: question.message.clone(),
            schema: question.schema.clone(),
            url: question.url.clone(),
        }
    }
}

/// Checks that the answer belongs to the question of the call. `question` is `None` for a call that waits for an approval.
pub(super) fn check(
    question: Option<&AskedQuestion>,
    answer: &ResolveApproval,
) -> Result<(), Problem> {
    let invalid = |detail: &str| Err(Problem::new(Code::InvalidBody, detail));
    let Some(question) = question else {
        return match answer.answer {
            Some(_) => invalid("The call waits for an approval, not for an `answer`."),
            None => Ok(()),
        };
    };
    if answer.tool_input.is_some() || answer.remember {
        return invalid(
            "The tool asks a question. `tool_input` and `remember` do not go with a question.",
        );
    }
    if answer.decision() != Decision::Approve {
        return Ok(());
    }
    match (&question.schema, &answer.answer) {
        (None, Some(_)) => invalid("The question has a URL and no form. Approve without `answer`."),
        (None, None) => Ok(()),
        (Some(_), None) => {
            invalid("Approve with an `answer`: the fields of the question's `schema`.")
        }
        (Some(schema), Some(fields)) => check_fields(schema, fields),
    }
}

/// Checks the fields of a form. A form that is no JSON Schema takes any fields, because its server checks them, too.
fn check_fields(schema: &RawJson, fields: &RawJson) -> Result<(), Problem> {
    let Ok(schema) = Schema::compile_any_draft(&schema.to_value()) else {
        return Ok(());
    };
    match schema.problems(&fields.to_value()) {
        None => Ok(()),
        Some(problems) => Err(Problem::new(
            Code::InvalidBody,
            format!("`answer` does not fit the question's `schema`: {problems}."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(schema: Option<&str>) -> AskedQuestion {
        AskedQuestion {
            schema: schema.map(|text| RawJson::parse(text).unwrap()),
            ..AskedQuestion::default()
        }
    }

    fn answer(decision: &str, fields: Option<&str>) -> ResolveApproval {
        ResolveApproval {
            decision: decision.to_owned(),
            answer: fields.map(|text| RawJson::parse(text).unwrap()),
            ..ResolveApproval::default()
        }
    }

    #[test]
    fn an_answer_must_fit_its_question() {
        let form = question(Some(
            r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#,
        ));
        let (odd, url) = (question(Some(r#"{"type":"odd"}"#)), question(None));
        let edited = ResolveApproval {
            tool_input: RawJson::parse("{}").ok(),
            ..answer("approve", None)
        };
        for (question, answer, is_fine) in [
            (None, answer("approve", None), true),
            (None, answer("approve", Some("{}")), false),
            (Some(&form), answer("approve", Some(r#"{"n":1}"#)), true),
            (Some(&form), answer("approve", Some(r#"{"n":"1"}"#)), false),
            (Some(&form), answer("approve", Some("{}")), false),
            (Some(&form), answer("approve", None), false),
            (Some(&form), answer("deny", None), true),
            (Some(&form), edited, false),
            (Some(&odd), answer("approve", Some(r#"{"n":"1"}"#)), true),
            (Some(&url), answer("approve", None), true),
            (Some(&url), answer("approve", Some("{}")), false),
        ] {
            let checked = check(question, &answer);
            assert_eq!(checked.is_ok(), is_fine, "{question:?} {answer:?}");
        }
    }
}
