//! A question of a running tool to a person, and the person's answer.
//!
//! A tool asks with [`ToolError::Asks`](crate::ToolError::Asks). The turn then waits, without a worker and for days if
//! necessary. After the answer the tool runs again, on any worker, with the answer in its context. A tool asks before it
//! has an effect, or keeps the finished part of its work in [`Question::notes`].

use everturn_proto::Json;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The words for the person, at most 16 KiB.
    pub message: String,
    /// The form of the answer, or the address to open.
    pub form: Form,
    /// The tool's own notes, which the tool gets back with the answer, at most 64 KiB. No reader gets the notes.
    pub notes: Json,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The person fills in a form: the JSON Schema of an object with flat properties, at most 64 KiB.
    Fields(Json),
    /// The person opens an address, at most 4 KiB, and says so.
    Url(String),
}

/// The answer to the last question of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The number of the question among the questions of the call, from 1.
    pub number: u32,
    /// The tool's notes, as in the question.
    pub notes: Json,
    /// The answer.
    pub answer: Answer,
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The fields of the form; an empty object for an opened address. The gateway has checked the fields against the form.
    Given(Json),
    /// The person declined to answer. The tool may go on without the answer.
    Declined,
}
