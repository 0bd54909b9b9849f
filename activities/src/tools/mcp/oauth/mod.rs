//! Access tokens for a server behind a URL: the grant `client_credentials` of OAuth 2.1, as the specification of MCP says.
//!
//! - `options`: what the operator says
//! - `challenge`: what a server says when it refuses a request (`WWW-Authenticate`)
//! - `metadata`: what a server and an authorization server say of themselves, and what of it is believed
//! - `grant`: the request for a token, and its answer
//! - `exchange`: sends both kinds of requests, within limits
//! - `access`: the token that is used now: asked for once for many callers, and renewed
//! - `error`: why there is no token
//!
//! Who a client's secret may be sent to is the operator's word alone. A server names its authorization servers itself, and
//! one that wants the secret would name its own.

mod access;
mod challenge;
mod error;
mod exchange;
mod grant;
mod metadata;
mod options;

pub use self::options::{
    ClientAuth, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host,
};
pub(super) use self::{access::Access, challenge::Challenge, error::AccessError};
