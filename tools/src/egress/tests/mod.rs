//! What the policy refuses, and that the client obeys it against a real server.
//!
//! - `policy`: which URLs may be asked, by their text alone
//! - `requests`: what the client does with names, redirects, secrets and answers
//! - `server`: the server and the resolver that the requests meet

mod policy;
mod requests;
mod server;

use super::EgressPolicy;

fn policy(allowed: &[&str]) -> EgressPolicy {
    let mut policy = EgressPolicy::default();
    for entry in allowed {
        policy.allow(entry).unwrap();
    }
    policy
}
