//! Tools of MCP servers, through the official `rmcp`.
//!
//! - [`options`]: the operator's settings for a server
//! - `server`: a server as a source of tools
//! - `pool`: the worker's links to a server, one for all tenants, one per tenant or one per person
//! - `secrets`: secrets in files, perhaps one file per tenant
//! - `link`: a connection to a server, made at first use, and made again with a back-off after its end
//! - `slots`: the slots for parallel calls; `vital`: a server that does not answer any more is restarted
//! - `connection`: the list of tools, and a call with its progress and cancel
//! - `handshake`: the start of a connection; `handler`: the server's notifications and questions
//! - `status`: the state of a server, for operators and models; `stderr`: the last words of a program
//! - `stdio`: a server as a child process, with bounded messages; `lines`: messages in several lines
//! - `http`: a server behind a URL (streamable HTTP); `http_client`: the client below `http`; `post`: a message over HTTP;
//!   `events`: reads a stream of events; `sse`: the older transport with one stream of events
//! - `lenient`: reads messages that are almost exact; `answered`: errors without a request
//! - `oauth`: access tokens for a server behind a URL; `authorized`: requests with tokens; `told`: secrets that the
//!   server must not repeat
//! - `catalog`: turns a server's list into tools for agents
//! - `tool`: a tool of a server, as called by the runtime
//! - `questions`: questions of a server to the person of a call
//! - `offered`: tools for people who have not consented to their server
//! - `result`: turns a server's answer into a tool's output; `error`: the meaning of each error for a call
//!
//! A server never stops a worker or fails a turn. While a server is away, its tools are not offered, and a call of
//! such a tool ends as an error that the model can read.

mod answered;
mod authorized;
mod catalog;
mod connection;
mod error;
mod events;
mod handler;
mod handshake;
mod http;
mod http_client;
mod lenient;
mod lines;
mod link;
mod oauth;
mod offered;
pub mod options;
mod pool;
mod post;
mod questions;
mod result;
mod secrets;
mod server;
mod slots;
mod sse;
mod status;
mod stderr;
mod stdio;
#[cfg(test)]
mod tests;
mod told;
mod tool;
mod vital;

pub use oauth::{
    ClientAuth, ConsentAnswer, ConsentError, ConsentServer, OAuthGrant, OAuthOptions, SecretSource,
    TokenSource, is_private_to_its_host, state_hash,
};
pub use options::{ALL_TOOLS, PerTenant, ServerLocation, ServerOptions};
pub use questions::Questions;
pub use secrets::SecretFile;
pub use server::McpServer;
pub use status::{ServerState, ServerStatus};
