//! Error responses: RFC 9457 `application/problem+json`, made only here.
//!
//! - `code`: the error codes, one for each action a client can take
//! - `response`: a handler returns a [`Problem`]; [`finish`] writes the body, and turns the framework's own error
//!   responses (unknown path, wrong method) into problems
//! - `sources`: conversions from errors of the store, the limits and the engine into problems

mod code;
mod response;
mod sources;

pub(crate) use self::response::ProblemBody;
pub(crate) use self::response::finish_rpc;
pub use self::{
    code::Code,
    response::{Problem, REQUEST_ID, finish},
};
