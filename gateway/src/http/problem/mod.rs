//! Error responses: RFC 9457 `application/problem+json`, made here and nowhere else.
//!
//! - `code`: what went wrong, by what the client can do about it
//! - `response`: a handler returns a [`Problem`]; [`finish`] writes its body, and also turns the framework's own error
//!   responses (unknown path, wrong method) into problems
//! - `sources`: errors of the parts below, as problems

mod code;
mod response;
mod sources;

pub(crate) use self::response::ProblemBody;
pub use self::{
    code::Code,
    response::{Problem, REQUEST_ID, finish},
};
