//! Access tokens for a server behind a URL by the specification of MCP: the grants `client_credentials` (the tokens of the
//! installation) and `authorization_code` (the tokens of a person who consents) of OAuth 2.1.
//!
//! - `options`: the operator's settings
//! - `challenge`: the challenge of a refused request (`WWW-Authenticate`)
//! - `metadata`: the metadata of servers and authorization servers, and the checks for trust
//! - `discovery`: from the settings to the metadata and the client
//! - `grant`: the request for a token, and the response
//! - `exchange`: sends requests for metadata and tokens, within limits
//! - `access`: the current token of the installation (`client`) or of a person (`person`)
//! - `client`: the token of the installation: requested once for many callers, and renewed
//! - `person`: the token of a person: read from the store, and renewed by one worker of all
//! - `token`: a token, and the secrets that a server must not repeat
//! - `tokens`: the tokens of people in the store, in sealed form
//! - `consent`: the way of a person to the authorization server and back
//! - `error`: reasons for a missing token
//!
//! Only the operator decides which authorization server receives a client's secret. A server names its authorization
//! servers itself, and a malicious server would name its own to get the secret.

mod access;
mod challenge;
mod client;
mod consent;
mod discovery;
mod error;
mod exchange;
mod grant;
mod metadata;
mod options;
mod person;
mod token;
mod tokens;

pub(super) use self::{access::Access, challenge::Challenge, error::AccessError, person::Person};
pub use self::{
    consent::{ConsentAnswer, ConsentError, ConsentServer, state_hash},
    options::{
        ClientAuth, OAuthGrant, OAuthOptions, SecretSource, TokenSource, is_private_to_its_host,
    },
};
