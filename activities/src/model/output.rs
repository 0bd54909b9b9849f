//! What an agent's answers have to be: JSON values that fit a schema (`[agents.NAME.output]`).

use everturn_proto::{Json, limits::MAX_JSON_LEVELS, turn::AgentDefinition, words::MessageRole};
use everturn_store::ContextMessage;
use serde_json::Value;

use super::ProviderKind;
use crate::tools::{compile_schema, problems};

/// What stands around an answer that a model writes as a block of code.
const FENCE: &str = "```";

/// What an answer has to be.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputFormat {
    /// The name under which providers get the schema.
    pub name: String,
    /// The JSON schema of the answer, which is an object.
    pub schema: Value,
    /// The provider gets it as a part of the instructions, and not in a field of its own.
    pub as_instruction: bool,
}

impl OutputFormat {
    /// What the answers of an agent have to be; `None`: any text.
    pub fn of(agent: &AgentDefinition) -> Option<Self> {
        let output = agent.output.as_ref()?;
        Some(Self {
            name: output.name.clone(),
            schema: output.schema.as_ref().map(Json::to_value)?,
            as_instruction: output.as_instruction,
        })
    }

    /// Checks that the schema is one, without fetching anything from anywhere.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for whoever writes the configuration.
    pub fn check(schema: &Value) -> Result<(), String> {
        compile_schema(schema).map(drop)
    }

    /// Returns the value that an answer holds. It may stand in a block of code.
    ///
    /// # Errors
    ///
    /// Why the answer is not what it has to be, in a sentence.
    pub(crate) fn read(&self, answer: &str) -> Result<Json, String> {
        let text = without_fence(answer.trim());
        if text.is_empty() {
            return Err("The answer is empty.".to_owned());
        }
        let value =
            Json::parse(text).map_err(|error| format!("The answer is not JSON: {error}."))?;
        if value.is_too_deep() {
            return Err(format!(
                "The answer has more than {MAX_JSON_LEVELS} arrays and objects in one another."
            ));
        }
        // The configuration was checked. A schema that a later version refuses binds nobody.
        let Ok(validator) = compile_schema(&self.schema) else {
            return Ok(value);
        };
        match problems(&validator, &value.to_value()) {
            None => Ok(value),
            Some(problems) => Err(format!("The answer does not fit its schema: {problems}.")),
        }
    }

    /// What the model is told after an answer that is not what it has to be; `None` when it may stand. `next` is the message
    /// after it. The last answer of an earlier turn stands as it is.
    ///
    /// It follows from the answer alone, so that each request says the same, and nothing else is stored.
    pub(super) fn complaint(
        &self,
        answer: &ContextMessage,
        next: Option<&ContextMessage>,
    ) -> Option<String> {
        let is_answer = answer.role == MessageRole::Assistant && answer.tool_calls.is_empty();
        let is_followed =
            next.is_none_or(|next| next.agent_execution_id == answer.agent_execution_id);
        if !is_answer || !is_followed {
            return None;
        }
        let problem = self.read(&answer.content).err()?;
        Some(format!(
            "Your last message is not the answer that was asked for. {problem} Answer once more, with the whole JSON \
             object and nothing before or after it."
        ))
    }

    /// True when a provider of this kind gets the schema in a field of its own. Gemini takes none beside tools.
    pub(super) fn has_field(&self, kind: ProviderKind, has_tools: bool) -> bool {
        let is_refused = kind == ProviderKind::Gemini && has_tools;
        !self.as_instruction && !is_refused
    }

    /// What tells a model the schema in words.
    pub(super) fn instruction(&self) -> String {
        format!(
            "When you give your answer, it must be one JSON object that fits this JSON schema, and nothing before or \
             after it, no Markdown either:\n{}",
            self.schema
        )
    }
}

/// The text within a block of code, when the whole text is one.
fn without_fence(text: &str) -> &str {
    let inner = text
        .strip_prefix(FENCE)
        .and_then(|rest| rest.strip_suffix(FENCE))
        .and_then(|inner| inner.split_once('\n'));
    inner.map_or(text, |(_, inner)| inner.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format() -> OutputFormat {
        OutputFormat {
            name: "answer".into(),
            schema: json!({
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            }),
            as_instruction: false,
        }
    }

    fn said(content: &str, of: &str) -> ContextMessage {
        ContextMessage {
            agent_execution_id: of.into(),
            ..ContextMessage::text(MessageRole::Assistant, content)
        }
    }

    #[test]
    fn an_answer_is_read_and_checked() {
        let read = |text: &str| format().read(text);
        assert_eq!(read(" {\"n\": 1}\n").unwrap().as_str(), "{\"n\": 1}");
        let fenced = "```json\n{\"n\": 1}\n```";
        assert_eq!(read(fenced).unwrap().as_str(), "{\"n\": 1}");
        for (text, problem) in [
            ("", "The answer is empty."),
            ("``````", "The answer is not JSON"),
            ("Here it is: {\"n\": 1}", "The answer is not JSON"),
            ("{\"n\": 1", "The answer is not JSON"),
            (
                "{\"n\": \"1\"}",
                "The answer does not fit its schema: at `/n`:",
            ),
            ("[]", "The answer does not fit its schema:"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(problem), "{text}: {error}");
        }
    }

    #[test]
    fn only_an_answer_that_may_be_given_again_is_refused() {
        let complaint = |answer: &ContextMessage, next: Option<&ContextMessage>| {
            format().complaint(answer, next).is_some()
        };
        let (bad, good) = (said("no", "run"), said("{\"n\":1}", "run"));
        assert!(complaint(&bad, None) && complaint(&bad, Some(&good)));
        // A message that has joined the turn.
        let steer = ContextMessage {
            role: MessageRole::User,
            ..said("and this", "run")
        };
        assert!(complaint(&bad, Some(&steer)));
        assert!(!complaint(&bad, Some(&said("next turn", "other"))));
        assert!(!complaint(&good, None) && !complaint(&steer, None));
    }
}
