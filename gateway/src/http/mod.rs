//! The HTTP surface of the gateway: requests in, answers out. Handlers read from the live side and the ports.
//!
//! - [`routes`]: the endpoints, one file each
//! - [`openapi`]: the OpenAPI document, generated from the endpoints
//! - [`state`]: the shared state of handlers
//! - [`extract`]: requests to checked values
//! - [`audit`]: audit entries about callers' actions
//! - [`auth`]: authentication and authorization: keys, tokens, browser sessions, origins
//! - `event_stream`: a feed as a response
//! - `range`: the part of a body that a request asks for
//! - `room`: memory of the caller's tenant, for requests and answers
//! - [`problem`]: error responses, made only here
//!
//! Must not be here: the order of events and texts, because the live side decides the order.

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
