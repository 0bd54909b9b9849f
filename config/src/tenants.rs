//! `tenants = […]`: the tenants to which a setting applies.

use toml::Spanned;

use super::{
    checker::Checker,
    forms::{Tenant, Written},
};

/// The most tenants of one list. The limit exists because an agent's definition contains the list, and each turn reads
/// the definition.
const MAX_TENANTS: usize = 1000;

pub(super) type TenantList = Spanned<Vec<Written<Tenant>>>;

/// Returns the listed tenants. Without a list, returns an empty vector, which means: all tenants.
pub(super) fn checked(check: &mut Checker<'_>, written: Option<&TenantList>) -> Vec<String> {
    let Some(written) = written else {
        return Vec::new();
    };
    let list = written.get_ref();
    if list.is_empty() || list.len() > MAX_TENANTS {
        check.wrong(
            written,
            format!(
                "`tenants` names 1 to {MAX_TENANTS} tenants; without `tenants`, the table is for every tenant"
            ),
        );
    }
    let mut tenants: Vec<String> = Vec::new();
    for tenant in list {
        match check.value(tenant) {
            Some(name) if tenants.contains(&name) => {
                check.named_twice(&tenant.at, "tenant", &name);
            }
            name => tenants.extend(name),
        }
    }
    tenants
}
