//! The format of an agent's answers: JSON objects, with or without a schema (`[agents.NAME.output]`).

use everturn_proto::{Json, limits::MAX_JSON_LEVELS, turn::AgentDefinition, words::MessageRole};
use everturn_store::ContextMessage;
use everturn_untrusted::Schema;
use serde_json::Value;

use crate::provider::ProviderKind;

/// The mark before and after an answer in a Markdown code block.
const FENCE: &str = "```";

/// The format of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputFormat {
    /// The name under which providers get the schema.
    pub name: String,
    /// The JSON schema of the answer, which is an object; `None`: any JSON object.
    pub schema: Option<Value>,
    /// True when the provider gets the format as a part of the instructions, and not in its own field.
    pub as_instruction: bool,
}

impl OutputFormat {
    /// Returns the format of the agent's answers; `None`: any text.
    pub fn of(agent: &AgentDefinition) -> Option<Self> {
        let output = agent.output.as_ref()?;
        Some(Self {
            name: output.name.clone(),
            schema: output.schema.as_ref().map(Json::to_value),
            as_instruction: output.as_instruction,
        })
    }

    /// Checks that the value is a valid JSON schema, without fetching referenced schemas.
    ///
    /// # Errors
    ///
    /// The problem of the schema, for the author of the configuration.
    pub fn check(schema: &Value) -> Result<(), String> {
        Schema::compile(schema).map(drop)
    }

    /// Returns the JSON value of an answer. The answer may be in a Markdown code block.
    ///
    /// # Errors
    ///
    /// A sentence with the reason why the answer does not have the format.
    pub fn read(&self, answer: &str) -> Result<Json, String> {
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
        let Some(schema) = &self.schema else {
            return if value.to_value().is_object() {
                Ok(value)
            } else {
                Err("The answer is not a JSON object.".to_owned())
            };
        };
        // The configuration was checked. A schema that only a later version refuses restricts no answer.
        let Ok(schema) = Schema::compile(schema) else {
            return Ok(value);
        };
        match schema.problems(&value.to_value()) {
            None => Ok(value),
            Some(problems) => Err(format!("The answer does not fit the schema: {problems}.")),
        }
    }

    /// Returns the complaint to the model after an answer in a wrong format; `None` when the answer is accepted. `next`
    /// is the message after the answer. The last answer of an earlier turn is always accepted.
    ///
    /// The complaint depends on the answer alone. Therefore every request repeats it in identical words, and it is not
    /// stored.
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

    /// True when a provider of this kind gets the format in its own field. Gemini takes no format together with tools.
    /// Anthropic takes only schemas.
    pub(super) fn has_field(&self, kind: ProviderKind, has_tools: bool) -> bool {
        let is_taken = match kind {
            ProviderKind::Gemini => !has_tools,
            ProviderKind::Anthropic => self.schema.is_some(),
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => true,
        };
        is_taken && !self.as_instruction
    }

    /// True when the system prompt for a provider of this kind explains the format in words. OpenAI takes the format of
    /// JSON without a schema only when the word JSON is in a message; the Responses API reads no word of the system
    /// prompt.
    pub(super) fn is_in_system(&self, kind: ProviderKind, has_tools: bool) -> bool {
        let needs_word = self.schema.is_none() && kind != ProviderKind::OpenAiResponses;
        needs_word || !self.has_field(kind, has_tools)
    }

    /// Returns the instruction that explains the format to a model in words.
    pub(super) fn instruction(&self) -> String {
        match &self.schema {
            Some(schema) => format!(
                "When you give your answer, it must be one JSON object that fits this JSON schema, and nothing before \
                 or after it, no Markdown either:\n{schema}"
            ),
            None => "When you give your answer, it must be one JSON object, and nothing before or after it, no \
                     Markdown either."
                .to_owned(),
        }
    }
}

/// Returns the text within a code block when the whole text is a code block, otherwise the text.
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
            schema: Some(json!({
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            })),
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
                "The answer does not fit the schema: at `/n`:",
            ),
            ("[]", "The answer does not fit the schema:"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(problem), "{text}: {error}");
        }
    }

    #[test]
    fn without_a_schema_any_object_is_an_answer() {
        let any = OutputFormat {
            schema: None,
            ..format()
        };
        assert_eq!(any.read("{\"a\": []}").unwrap().as_str(), "{\"a\": []}");
        for text in ["[1]", "7", "null"] {
            let error = any.read(text).unwrap_err();
            assert_eq!(error, "The answer is not a JSON object.", "{text}");
        }
        assert!(
            any.read("Hello.")
                .unwrap_err()
                .starts_with("The answer is not JSON")
        );
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
