//! Endpoints for admins: the audit trail, failures, API keys, refused owners, tenants and the tenants' usage of models. An
//! admin sees only their own tenant, unless the credential has the scope `admin:all`.

pub(super) mod audit;
pub(super) mod failures;
pub(super) mod keys;
pub(super) mod owners;
pub(super) mod tenants;
pub(super) mod usage;

use chrono::{DateTime, Utc};
use everturn_proto::ids;

use crate::{
    config::Scope,
    http::{
        auth::AuthRefusal,
        extract::Caller,
        problem::{Code, Problem},
    },
};

/// Maximum bytes of a word in a parameter, like an action or an agent.
const MAX_WORD_BYTES: usize = 255;

/// The tenants that an admin may see.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// One tenant.
    Tenant(String),
    /// Every tenant, and the entries without a tenant.
    All,
}

impl Seen {
    /// Returns the requested tenants, if the caller may see them. Without a tenant's name, an admin of one tenant gets
    /// their own tenant.
    fn by(caller: &Caller, asked: Option<String>) -> Result<Self, AdminRefusal> {
        let asked = asked.map(checked_tenant).transpose()?;
        let is_of_all = caller.scopes.has(Scope::AdminAll);
        let own = &caller.access.tenant_id;
        match asked {
            None if is_of_all => Ok(Self::All),
            None => Ok(Self::Tenant(own.clone())),
            Some(tenant) if is_of_all || tenant == *own => Ok(Self::Tenant(tenant)),
            Some(_) => Err(AuthRefusal::Scope(Scope::AdminAll).into()),
        }
    }

    /// Returns the tenant; `None` for every tenant.
    fn tenant(&self) -> Option<&str> {
        match self {
            Self::Tenant(tenant) => Some(tenant),
            Self::All => None,
        }
    }
}

fn checked_tenant(tenant: String) -> Result<String, Problem> {
    match ids::check(&tenant) {
        Ok(()) => Ok(tenant),
        Err(reason) => {
            let detail = format!("A tenant {reason}.");
            Err(Problem::new(Code::InvalidParameter, detail))
        }
    }
}

fn checked_word(name: &str, word: Option<String>) -> Result<Option<String>, Problem> {
    let is_word = |word: &String| word.len() <= MAX_WORD_BYTES && !word.contains('\0');
    if word.as_ref().is_none_or(is_word) {
        return Ok(word);
    }
    Err(invalid(format!(
        "`{name}` may have at most {MAX_WORD_BYTES} bytes and no NUL character."
    )))
}

fn time(name: &str, text: &str) -> Result<DateTime<Utc>, Problem> {
    // Only years with four digits are accepted, because SQLite compares times as texts.
    let is_plain = |at: &DateTime<Utc>| (0..10_000).contains(&chrono::Datelike::year(at));
    let at = DateTime::parse_from_rfc3339(text).map(|at| at.to_utc());
    at.ok().filter(is_plain).ok_or_else(|| {
        invalid(format!(
            "`{name}` is a time like 2026-11-30T12:00:00Z (RFC 3339)."
        ))
    })
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidParameter, detail)
}

/// The reason why the gateway refuses an admin's request.
#[derive(Debug)]
pub(super) enum AdminRefusal {
    Auth(AuthRefusal),
    Problem(Problem),
}

impl From<AuthRefusal> for AdminRefusal {
    fn from(refusal: AuthRefusal) -> Self {
        Self::Auth(refusal)
    }
}

impl From<Problem> for AdminRefusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<everturn_store::StoreError> for AdminRefusal {
    fn from(error: everturn_store::StoreError) -> Self {
        Self::Problem(error.into())
    }
}

impl axum::response::IntoResponse for AdminRefusal {
    fn into_response(self) -> axum::response::Response {
        match self {
            Self::Auth(refusal) => refusal.into_response(),
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_time_of_four_digits_or_is_refused(
            text in "\\PC{0,40}", like in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](Z|[+-][0-2][0-9]:[0-5][0-9])",
        ) {
            for text in [text, like] {
                match time("since", &text) {
                    // Times are compared as texts in SQLite.
                    Ok(at) => prop_assert_eq!(at.to_rfc3339().find('-'), Some(4)),
                    Err(problem) => prop_assert_eq!(problem.code(), Code::InvalidParameter),
                }
            }
        }
    }
}
