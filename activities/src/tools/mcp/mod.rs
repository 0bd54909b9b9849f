//! Tools of MCP servers, through the official `rmcp`.
//!
//! - [`options`]: what the operator says about a server
//! - `server`: a server as a source of tools
//! - `pool`: the worker's links to it, one for all or one for each tenant
//! - `secrets`: secrets in files, which may be a tenant's own
//! - `link`: one connection to it, made when first needed, made anew with a back-off when it ends
//! - `connection`: the list of tools, one call with its progress and its cancel
//! - `handshake`: how a connection begins; `handler`: the server's notifications
//! - `stdio`: a server as a child process, with bounded messages
//! - `http`: a server behind a URL (streamable HTTP); `http_client`: the client below it
//! - `oauth`: access tokens for such a server; `authorized`: its requests with them; `told`: what it must not repeat
//! - `catalog`: from what a server lists to tools that agents can be offered
//! - `tool`: a tool of a server as the runtime calls it
//! - `result`: from a server's answer to a tool's output; `error`: what each error means for the call
//!
//! A server is never a reason for a worker to stop or a turn to fail: while it is away, its tools are not offered, and
//! a call of one of them ends as an error that the model can read.

mod authorized;
mod catalog;
mod connection;
mod error;
mod handler;
mod handshake;
mod http;
mod http_client;
mod link;
mod oauth;
pub mod options;
mod pool;
mod result;
mod secrets;
mod server;
mod stdio;
#[cfg(test)]
mod tests;
mod told;
mod tool;

pub use oauth::{ClientAuth, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host};
pub use options::{PerTenant, ServerLocation, ServerOptions};
pub use secrets::SecretFile;
pub use server::McpServer;
