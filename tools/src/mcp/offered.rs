//! The tools of a server that people consent to, for people without a consent: the list that another person of the tenant got.
//! The tools of the list have no connection, so nobody calls a tool over the connection of another person.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use everturn_proto::Json;

use crate::{
    context::ToolContext,
    error::ToolError,
    registry::ToolSet,
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// The most tenants whose list is kept. Another tenant's list takes the stead of one of them.
const MAX_TENANTS: usize = 1000;

/// The last lists of tools, by tenant. A list of one tenant may name things of the tenant.
#[derive(Default)]
pub(super) struct Offered(Mutex<BTreeMap<String, Arc<ToolSet>>>);

impl Offered {
    /// Keeps the list that a person of the tenant got.
    pub(super) fn note(&self, tenant_id: &str, tools: &Arc<ToolSet>) {
        if tools.is_empty() {
            return;
        }
        let mut lists = self.lists();
        if let Some(kept) = lists.get(tenant_id)
            && is_same(kept, tools)
        {
            return;
        }
        if lists.len() >= MAX_TENANTS && !lists.contains_key(tenant_id) {
            lists.pop_first();
        }
        let shown = tools.iter().map(|(name, tool)| {
            let spec = tool.spec().clone();
            (name.clone(), tool.with(|_| Arc::new(Shown { spec })))
        });
        lists.insert(tenant_id.to_owned(), Arc::new(shown.collect()));
    }

    /// Returns the last list of the tenant.
    pub(super) fn tools(&self, tenant_id: &str) -> Arc<ToolSet> {
        self.lists().get(tenant_id).cloned().unwrap_or_default()
    }

    fn lists(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ToolSet>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same(one: &ToolSet, other: &ToolSet) -> bool {
    let specs = |tools: &ToolSet| tools.len();
    let mut pairs = one.values().zip(other.values());
    specs(one) == specs(other) && pairs.all(|(one, other)| one.spec() == other.spec())
}

/// A tool without a connection.
struct Shown {
    spec: ToolSpec,
}

#[async_trait]
impl Tool for Shown {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Mcp
    }

    async fn run(&self, _: ToolContext, _: Json) -> Result<Json, ToolError> {
        Err(ToolError::Failed(
            "The user has not consented to the use of the tool's server (mcp_consent_needed). The tool was not called."
                .to_owned(),
        ))
    }
}
