//! The parts of a reply while they arrive, and the trait of the state machines that fill them.

use everturn_proto::event::Usage;
use serde_json::Value;

use super::{
    calls::Calls,
    citations::Citations,
    finish::End,
    hearing::{Hearing, Texts},
};
use crate::{error::ModelError, port::ModelReply};

/// The state machine of one wire: takes the frames of one reply.
///
/// A frame that is an error does not arrive here, and a frame with unknown fields is no error.
pub(crate) trait ReplyReader: Send {
    /// Takes a frame. `text` is the frame as the provider wrote it.
    fn read(
        &mut self,
        frame: &Value,
        text: &str,
        received: &mut Received,
        hearing: &mut Hearing<'_>,
    ) -> Result<(), ModelError>;

    /// Ends the reply: adds the parts that are known only at the end.
    fn finish(&mut self, _received: &mut Received) -> Result<(), ModelError> {
        Ok(())
    }
}

/// How far a reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Progress {
    /// The reply goes on.
    #[default]
    Open,
    /// The provider has reported the end of the reply. Counts of tokens may follow.
    Ended,
    /// Nothing may follow.
    Over,
}

/// The parts of a reply that are not text.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) progress: Progress,
    pub(crate) calls: Calls,
    pub(crate) end: End,
    pub(crate) usage: Usage,
    pub(crate) citations: Citations,
}

impl Received {
    /// Notes the finish word of the reply.
    pub(crate) fn ended(&mut self, word: &str) {
        self.end.word = Some(word.to_owned());
        self.progress = self.progress.max(Progress::Ended);
    }

    /// Returns the reply.
    ///
    /// # Errors
    ///
    /// The error of a reply that must not count as an answer.
    pub(crate) fn reply(self, provider: &str, texts: Texts) -> Result<ModelReply, ModelError> {
        let has_text = !texts.text.trim().is_empty();
        let is_cut = self.end.judge(provider, has_text, !self.calls.is_empty())?;
        Ok(ModelReply {
            text: texts.text,
            reasoning: texts.reasoning,
            tool_calls: self.calls.finish(is_cut),
            is_cut,
            usage: self.usage,
            citations: self.citations.finish(),
        })
    }
}

/// Returns a count of tokens; a number that is missing, negative or no integer is 0.
pub(crate) fn count(usage: &Value, path: &str) -> u32 {
    let number = usage.pointer(path).and_then(Value::as_u64);
    number.map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX))
}
