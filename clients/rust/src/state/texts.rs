//! The texts that models are writing now: rules 6 and 7 of `clients/transcripts/README.md`.

use serde::Serialize;

use super::fields::Fields;

/// The most open texts, more than a gateway shows. Beyond the limit, the oldest text is dropped, because its event will
/// bring the text.
const MAX_TEXTS: usize = 256;

/// A text that a model is writing. The text is not stored: a later event has the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenText {
    /// The agent execution that writes the text.
    pub agent_execution_id: String,
    /// The LLM call of the agent execution, from 0.
    pub step: u64,
    /// A `text` becomes the `content` of a thought or of the answer, a `reasoning` the `reasoning` of a thought. `call_` with a
    /// number is a tool call ([`OpenText::written_call`]).
    pub part: String,
    /// The generation of the call that writes the text.
    pub generation: u64,
    /// The text so far.
    pub text: String,
    /// True when the model has finished the text. The text's event follows.
    pub ended: bool,
    /// The message id of the turn.
    pub message_id: String,
    /// The id of the call that started the sub-agent, only for a sub-agent's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

impl OpenText {
    /// Returns the tool and the arguments so far of a tool call that the model is writing; `None` for a text of another
    /// kind.
    pub fn written_call(&self) -> Option<(&str, &str)> {
        let is_call = self.part.starts_with("call_");
        is_call.then(|| self.text.split_once('\n').unwrap_or((&self.text, "")))
    }
}

/// The open texts of a conversation, in the order of their start.
#[derive(Debug, Default)]
pub(super) struct Texts(pub(super) Vec<OpenText>);

impl Texts {
    /// Takes a text frame. `parent` is the call that started the writing sub-agent. Returns true when the texts
    /// changed.
    pub(super) fn apply(&mut self, data: Fields<'_>, parent: Option<&str>) -> bool {
        let (Some(step), Some(generation)) = (data.count("step"), data.count("generation")) else {
            return false;
        };
        let (agent, part) = (data.text("agent_execution_id"), data.text("part"));
        let is_it = |text: &OpenText| {
            text.agent_execution_id == agent && text.step == step && text.part == part
        };
        let at = self.0.iter().position(is_it);
        if data.text("type") == "text_start" {
            let begun = OpenText {
                agent_execution_id: agent.to_owned(),
                step,
                part: part.to_owned(),
                generation,
                text: data.text("text").to_owned(),
                ended: false,
                message_id: data.text("message_id").to_owned(),
                parent_tool_call_id: parent.map(str::to_owned),
            };
            return self.begin(at, begun);
        }
        let Some(at) = at.filter(|at| self.0[*at].generation == generation) else {
            return false;
        };
        if data.text("type") == "text_end" {
            self.0[at].ended = true;
            return true;
        }
        self.append(at, data)
    }

    fn begin(&mut self, at: Option<usize>, begun: OpenText) -> bool {
        match at {
            Some(at) if self.0[at].generation > begun.generation => return false,
            Some(at) => self.0[at] = begun,
            None => {
                self.0.push(begun);
                let excess = self.0.len().saturating_sub(MAX_TEXTS);
                self.0.drain(..excess);
            }
        }
        true
    }

    fn append(&mut self, at: usize, data: Fields<'_>) -> bool {
        let (piece, known) = (data.text("text"), self.0[at].text.len() as u64);
        let offset = data.count("offset").unwrap_or(known);
        if offset == known {
            self.0[at].text.push_str(piece);
            return true;
        }
        let is_repeated = offset.saturating_add(piece.len() as u64) <= known;
        if !is_repeated {
            // A delta is missing.
            self.0.remove(at);
        }
        !is_repeated
    }

    /// Drops the texts of an agent execution, because an event has replaced the texts.
    pub(super) fn drop_of(&mut self, agent_execution_id: &str) {
        self.0
            .retain(|text| text.agent_execution_id != agent_execution_id);
    }

    /// Drops every text. Returns true when the list was not empty.
    pub(super) fn clear(&mut self) -> bool {
        let had = !self.0.is_empty();
        self.0.clear();
        had
    }
}
