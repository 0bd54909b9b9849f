//! The HTTP surface: requests in, answers out. It reads what the live side and the ports below it give.
//!
//! - [`routes`]: the endpoints, one file each
//! - [`openapi`]: the document that describes the endpoints, made from them
//! - [`state`]: what handlers need
//! - [`extract`]: requests to checked values
//! - [`audit`]: what is written of what callers do
//! - [`auth`]: who may do what: keys, tokens, browser sessions, origins
//! - `event_stream`: a feed as a response
//! - `range`: which part of a body a request asks for
//! - `room`: memory of the caller's tenant, for requests and answers
//! - [`problem`]: the one place that makes error responses
//!
//! Must not be here: the order of events and texts, which the live side decides.

pub mod audit;
pub mod auth;
mod event_stream;
pub mod extract;
pub mod openapi;
pub mod problem;
mod range;
mod room;
pub mod routes;
pub mod state;
