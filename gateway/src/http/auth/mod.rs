//! Who may do what: from a credential to a [`Caller`], before any handler runs.
//!
//! - `middleware`: what runs before the handlers
//! - `authenticator`: from a request to its caller; opens and ends sessions
//! - [`caller`]: who is asking, as handlers see it
//! - `keys`, [`secret`]: API keys and sessions, in the store and as text
//! - `lookups`: what keys that do not exist may cost
//! - `token`, `jwks`: tokens of an identity provider, and its public keys
//! - `cookie`: the session of a browser
//! - `origin`: which pages may call (CORS), and which may use a cookie
//! - `refusal`: what a caller is told whose request is refused
//!
//! A credential is read from the header `Authorization` or the session's cookie, never from a URL: URLs are in logs,
//! histories and `Referer`s. None is ever logged.
//!
//! Must not be here: which conversation belongs to whom. That is [`Access`](everturn_store::Access), an argument of
//! every query.

mod authenticator;
pub mod caller;
mod cookie;
mod jwks;
mod keys;
mod lookups;
mod middleware;
mod origin;
mod refusal;
pub mod secret;
mod token;

pub(crate) use self::{
    authenticator::Authenticator,
    cookie::SECURE_NAME as SECURE_COOKIE,
    middleware::{authenticate, check_admin, check_approve, check_codec, check_scope},
    origin::cors,
    refusal::AuthRefusal,
};
pub use self::{
    caller::{Caller, Credential},
    secret::Secret,
};
