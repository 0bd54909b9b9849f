//! What admins do: they read the audit trail, look after keys, and see tenants and what these took. An admin is one of
//! their own tenant, unless their scope is `admin:all`.

pub(super) mod audit;
pub(super) mod keys;
pub(super) mod tenants;
pub(super) mod usage;

use everturn_proto::ids;
use everturn_proto::limits::MAX_ID_BYTES;

use crate::{
    config::Scope,
    http::{
        auth::AuthRefusal,
        extract::Caller,
        problem::{Code, Problem},
    },
};

/// What an admin may see.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// One tenant.
    Tenant(String),
    /// Every tenant, and what belongs to none.
    All,
}

impl Seen {
    /// What the caller asks for, if they may. Without a name, an admin of one tenant asks for this one.
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

    /// The tenant; `None` for all.
    fn tenant(&self) -> Option<&str> {
        match self {
            Self::Tenant(tenant) => Some(tenant),
            Self::All => None,
        }
    }
}

fn checked_tenant(tenant: String) -> Result<String, Problem> {
    if ids::is_valid(&tenant) {
        return Ok(tenant);
    }
    let detail = format!("A tenant has 1 to {MAX_ID_BYTES} letters, digits, `-`, `_`, `.` or `:`.");
    Err(Problem::new(Code::InvalidParameter, detail))
}

/// Why something is not done for an admin.
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
