//! Endpoints for admins: the audit trail, API keys, tenants and the tenants' usage of models. An admin sees only their
//! own tenant, unless the credential has the scope `admin:all`.

pub(super) mod audit;
pub(super) mod keys;
pub(super) mod tenants;
pub(super) mod usage;

use everturn_proto::ids;

use crate::{
    config::Scope,
    http::{
        auth::AuthRefusal,
        extract::Caller,
        problem::{Code, Problem},
    },
};

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
