//! The links of a worker to a server: one link for all tenants, one per tenant if the server keeps state, or one per consent
//! of a person if people consent to the use of the server.
//!
//! The number of these links is limited. An unused link is closed after a while, or gives way to a link of a
//! different tenant. A link in use never gives way, so no tenant loses a call to a different tenant.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::future::join_all;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    catalog,
    link::Link,
    oauth::{Access, Person},
    options::{ServerLocation, ServerOptions},
};
use crate::{egress::Egress, error::ToolError};

/// The links to a server.
pub(super) struct Pool {
    options: ServerOptions,
    /// Sends the requests for tokens.
    egress: Egress,
    links: Mutex<Links>,
    /// Links that are closing.
    closing: TaskTracker,
}

#[derive(Default)]
struct Links {
    held: BTreeMap<LinkOf, Held>,
    is_closed: bool,
}

/// The owner of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LinkOf {
    Everybody,
    Tenant(String),
    /// The id of a person's consent.
    Consent(String),
}

struct Held {
    link: Arc<Link>,
    guard: LinkGuard,
    last_used: Instant,
}

/// A reference count that keeps a link open while the link is used.
pub(super) type LinkGuard = Arc<()>;

impl Held {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.guard) > 1
    }
}

impl Pool {
    pub(super) fn new(options: ServerOptions, egress: Egress) -> Arc<Self> {
        Arc::new(Self {
            options,
            egress,
            links: Mutex::default(),
            closing: TaskTracker::new(),
        })
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// Returns the link of a tenant, or of a person who has consented, and creates a missing link. The link stays open while
    /// the caller holds the returned [`LinkGuard`]. The error is for the model.
    pub(super) fn link(
        self: &Arc<Self>,
        tenant_id: &str,
        person: Option<Person>,
    ) -> Result<(Arc<Link>, LinkGuard), ToolError> {
        let key = match (&person, self.options.per_tenant) {
            (Some(person), _) => LinkOf::Consent(person.consent_id.clone()),
            (None, Some(_)) => LinkOf::Tenant(tenant_id.to_owned()),
            (None, None) => LinkOf::Everybody,
        };
        let mut links = self.links();
        if let Some(held) = links.held.get_mut(&key) {
            held.last_used = Instant::now();
            return Ok((Arc::clone(&held.link), Arc::clone(&held.guard)));
        }
        if links.is_closed || !self.has_room(&mut links) {
            return Err(self.unavailable());
        }
        let options = ServerOptions {
            tenant_id: self.options.per_tenant.map(|_| tenant_id.to_owned()),
            ..self.options.clone()
        };
        let held = Held {
            link: self.new_link(options, person),
            guard: LinkGuard::default(),
            last_used: Instant::now(),
        };
        let used = (Arc::clone(&held.link), Arc::clone(&held.guard));
        if let Some(limits) = self.options.per_tenant {
            let idle = keep(
                Arc::downgrade(self),
                key.clone(),
                Arc::downgrade(&held.link),
                limits.idle,
            );
            tokio::spawn(idle);
        }
        links.held.insert(key, held);
        Ok(used)
    }

    fn new_link(&self, options: ServerOptions, person: Option<Person>) -> Arc<Link> {
        let oauth = match &options.location {
            ServerLocation::Url { oauth, .. } => oauth.clone(),
            ServerLocation::Command { .. } | ServerLocation::Unusable { .. } => None,
        };
        let access = oauth.map(|oauth| {
            let tenant_id = options.tenant_id.clone();
            Arc::new(Access::new(*oauth, tenant_id, self.egress.clone(), person))
        });
        Link::new(options, access, catalog::tools)
    }

    /// Makes room for a new link by closing the least recently used link that is not in use. Returns false when every
    /// link is in use.
    fn has_room(&self, links: &mut Links) -> bool {
        let Some(limits) = self.options.per_tenant else {
            return true;
        };
        if links.held.len() < limits.max_connections {
            return true;
        }
        let unused = links.held.iter().filter(|(_, held)| !held.is_in_use());
        let oldest = unused.min_by_key(|(_, held)| held.last_used);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            tracing::warn!(
                server = self.options.name,
                max_connections = limits.max_connections,
                "all connections to an MCP server are in use; raise `max_connections`"
            );
            return false;
        };
        self.remove(links, &key);
        true
    }

    fn remove(&self, links: &mut Links, key: &LinkOf) {
        if let Some(held) = links.held.remove(key) {
            self.closing.spawn(async move { held.link.close().await });
        }
    }

    /// Ends all connections in order. Calls in flight are lost.
    pub(super) async fn close(&self) {
        let held = {
            let mut links = self.links();
            links.is_closed = true;
            std::mem::take(&mut links.held)
        };
        join_all(held.values().map(|held| held.link.close())).await;
        self.closing.close();
        self.closing.wait().await;
    }

    fn unavailable(&self) -> ToolError {
        let server = &self.options.name;
        ToolError::Failed(format!(
            "MCP server `{server}` is not available now; the tool was not called."
        ))
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the link after `idle` without use. Returns the time until which the link stays open, or `None` for a
    /// closed link.
    fn kept_until(&self, key: &LinkOf, link: &Weak<Link>, idle: Duration) -> Option<Instant> {
        let mut links = self.links();
        let held = links.held.get_mut(key)?;
        if !std::ptr::eq(Arc::as_ptr(&held.link), link.as_ptr()) {
            return None;
        }
        let now = Instant::now();
        if held.is_in_use() {
            held.last_used = now;
        }
        let until = held.last_used + idle;
        if until > now {
            return Some(until);
        }
        self.remove(&mut links, key);
        None
    }
}

/// Closes a link after `idle` without use.
async fn keep(pool: Weak<Pool>, key: LinkOf, link: Weak<Link>, idle: Duration) {
    loop {
        let until = pool
            .upgrade()
            .and_then(|pool| pool.kept_until(&key, &link, idle));
        let Some(until) = until else { return };
        tokio::time::sleep_until(until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mcp::options::PerTenant, testing::egress};

    fn pool(max_connections: usize, idle: Duration) -> Arc<Pool> {
        let location = ServerLocation::Url {
            url: "http://localhost:9/".into(),
            headers: Vec::new(),
            header_files: Vec::new(),
            oauth: None,
        };
        let limits = PerTenant {
            max_connections,
            idle,
        };
        let options = ServerOptions {
            per_tenant: Some(limits),
            ..ServerOptions::new("web", location)
        };
        Pool::new(options, egress())
    }

    fn tenants(pool: &Pool) -> Vec<String> {
        let links = pool.links();
        let tenant = |key: &LinkOf| match key {
            LinkOf::Tenant(tenant_id) => tenant_id.clone(),
            LinkOf::Consent(id) => id.clone(),
            LinkOf::Everybody => "everybody".to_owned(),
        };
        links.held.keys().map(tenant).collect()
    }

    #[tokio::test]
    async fn each_tenant_has_a_link_of_its_own() {
        let pool = pool(10, Duration::from_mins(1));
        let (a, _) = pool.link("a", None).unwrap();
        let (b, _) = pool.link("b", None).unwrap();
        let (again, _) = pool.link("a", None).unwrap();
        assert!(!Arc::ptr_eq(&a, &b) && Arc::ptr_eq(&a, &again));
        assert_eq!(b.options.tenant_id.as_deref(), Some("b"));
        pool.close().await;
        assert!(pool.link("a", None).is_err());
    }

    #[tokio::test]
    async fn the_link_that_was_not_used_for_longest_gives_way() {
        let pool = pool(2, Duration::from_mins(1));
        for tenant in ["a", "b", "a", "c"] {
            pool.link(tenant, None).unwrap();
        }
        assert_eq!(tenants(&pool), ["a", "c"]);
    }

    #[tokio::test]
    async fn a_link_in_use_gives_way_to_nobody() {
        let pool = pool(2, Duration::from_mins(1));
        let used = (pool.link("a", None).unwrap(), pool.link("b", None).unwrap());
        let error = pool.link("c", None).err().unwrap();
        assert!(error.to_string().contains("not available"), "{error}");
        drop(used.0);
        pool.link("c", None).unwrap();
        assert_eq!(tenants(&pool), ["b", "c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_link_is_closed_after_a_while() {
        let pool = pool(2, Duration::from_secs(10));
        pool.link("a", None).unwrap();
        let used = pool.link("b", None).unwrap();
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(tenants(&pool), ["b"]);
        drop(used);
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert!(tenants(&pool).is_empty());
    }

    #[tokio::test]
    async fn all_share_one_link_unless_it_is_wanted_otherwise() {
        let options = ServerOptions {
            per_tenant: None,
            ..pool(1, Duration::from_secs(1)).options.clone()
        };
        let pool = Pool::new(options, egress());
        let (a, b) = (pool.link("a", None).unwrap(), pool.link("b", None).unwrap());
        assert!(Arc::ptr_eq(&a.0, &b.0));
    }
}
