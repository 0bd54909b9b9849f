//! `questions` of an MCP server: the tools that may ask people.

use everturn_tools::mcp::Questions;
use serde::Deserialize;

/// The tools that may ask people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QuestionsWord {
    None,
    Repeatable,
    All,
}

impl From<QuestionsWord> for Questions {
    fn from(word: QuestionsWord) -> Self {
        match word {
            QuestionsWord::None => Self::None,
            QuestionsWord::Repeatable => Self::Repeatable,
            QuestionsWord::All => Self::All,
        }
    }
}
