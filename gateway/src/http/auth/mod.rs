//! Authentication and authorization: from a credential to a [`Caller`], before any handler runs.
//!
//! - `middleware`: the checks before the handlers
//! - `authenticator`: from a request to its caller
//! - `sessions`: opens and ends browser sessions
//! - `ends`: the end of credentials in use, and of open streams
//! - [`caller`]: the caller as handlers see it
//! - `keys`, [`secret`]: API keys and sessions, in the store and as text
//! - `owners`: owners with ended sign-ins, and refused owners
//! - `lookups`: unknown keys, which are looked up once in a while
//! - `refused_sign_ins`: the limit of refused credentials of an address
//! - `token`, `jwks`: tokens of an identity provider, and its public keys
//! - `cookie`: the session of a browser
//! - `origin`: pages that may call (CORS), and pages that may use a cookie
//! - `refusal`: the response to a refused request
//!
//! The gateway reads a credential from the header `Authorization` or the session's cookie, never from a URL, because
//! URLs appear in logs, histories and `Referer`s. No credential is ever logged.
//!
//! Must not be here: the owner of a conversation. [`Access`](everturn_store::Access) is an argument of every query.

mod authenticator;
pub mod caller;
mod cookie;
mod ends;
mod jwks;
mod keys;
mod lookups;
mod middleware;
mod origin;
mod owners;
mod refusal;
mod refused_sign_ins;
pub mod secret;
mod sessions;
mod token;

pub(crate) use self::{
    authenticator::Authenticator,
    cookie::SECURE_NAME as SECURE_COOKIE,
    middleware::{authenticate, check_admin, check_approve, check_calls, check_codec, check_scope},
    origin::cors,
    refusal::AuthRefusal,
};
pub use self::{
    caller::{Caller, Credential},
    secret::Secret,
};
