//! Access tokens for a server behind a URL: the grant `client_credentials` of OAuth 2.1, by the specification of MCP.
//!
//! - `options`: the operator's settings
//! - `challenge`: the challenge of a refused request (`WWW-Authenticate`)
//! - `metadata`: the metadata of servers and authorization servers, and the checks for trust
//! - `grant`: the request for a token, and the response
//! - `exchange`: sends requests for metadata and tokens, within limits
//! - `access`: the current token: requested once for many callers, and renewed
//! - `error`: reasons for a missing token
//!
//! Only the operator decides which authorization server receives a client's secret. A server names its authorization
//! servers itself, and a malicious server would name its own to get the secret.

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
