//! The tenant of a payload. A tenant's payloads have keys of their own, which the codec derives with the tenant's label.
//!
//! Temporal's SDK tells a codec neither the workflow nor the activity of a payload. So the codec takes the label of the request or
//! the activity that encrypts the payload ([`within`], [`of_this_task`]). Without a label of the caller, the codec takes the tenant
//! in the payload's JSON. A payload without a tenant has the installation's key.

use std::{
    num::NonZeroUsize,
    sync::{LazyLock, Mutex, PoisonError},
};

use everturn_proto::ids;
use lru::LruCache;
use serde::Deserialize;
use tokio::task::{self, Id};

/// The number of activities whose tenant a process remembers: more than a process has at a time. A result of a forgotten activity
/// has no label.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(65_536).expect("it is not zero");

tokio::task_local! {
    static SCOPE: String;
}

/// The labels of tasks, by the id of the task. The oldest labels are forgotten first.
static TASKS: LazyLock<Mutex<Remembered>> = LazyLock::new(|| Mutex::new(none_remembered()));

type Remembered = LruCache<Id, String>;

fn none_remembered() -> Remembered {
    LruCache::new(REMEMBERED)
}

/// Returns the label of a tenant: the tenant's id, or a hash of a long id. The tenant's fairness key in the engine is the label,
/// too.
pub fn label(tenant_id: &str) -> String {
    ids::fairness_key(tenant_id)
}

/// Runs a future, and encrypts its payloads for this tenant.
pub async fn within<F: Future>(tenant_id: &str, future: F) -> F::Output {
    SCOPE.scope(label(tenant_id), future).await
}

/// Encrypts the further payloads of the current task for this label. The SDK encrypts the result of an activity after the end of
/// the activity, in the activity's task.
pub fn of_this_task(label: &str) {
    let Some(id) = task::try_id() else { return };
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    tasks.put(id, label.to_owned());
}

/// Returns the label of the running request or task; `None` without a label.
pub(crate) fn current() -> Option<String> {
    let scope = SCOPE.try_with(Clone::clone).ok();
    scope.or_else(|| {
        let id = task::try_id()?;
        let tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.peek(&id).cloned()
    })
}

/// The tenant in the JSON of Everturn's payloads: the input of a workflow, the input of a remote tool, and the answer to the claim
/// of a remote tool.
#[derive(Deserialize)]
struct Named {
    tenant_id: Option<String>,
    input: Option<NamedWithin>,
}

#[derive(Deserialize)]
struct NamedWithin {
    tenant_id: Option<String>,
}

/// Returns the label of the tenant in the JSON of a payload; `None` for JSON without a tenant.
pub fn named_in(json: &[u8]) -> Option<String> {
    let named: Named = serde_json::from_slice(json).ok()?;
    let within = named.input.and_then(|input| input.tenant_id);
    named
        .tenant_id
        .or(within)
        .filter(|tenant| !tenant.is_empty())
        .map(|tenant| label(&tenant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_label_is_that_of_the_request_or_the_task() {
        assert_eq!(current(), None);
        let inner = within("acme", async { current() }).await;
        assert_eq!(inner.as_deref(), Some("acme"));
        let task = tokio::spawn(async {
            of_this_task("beta");
            tokio::task::yield_now().await;
            let scoped = within("acme", async { current() }).await;
            (current(), scoped)
        });
        let (of_task, scoped) = task.await.expect("it does not panic");
        assert_eq!(of_task.as_deref(), Some("beta"));
        assert_eq!(scoped.as_deref(), Some("acme"));
        assert_eq!(current(), None);
    }

    #[test]
    fn a_payload_names_its_tenant() {
        let named = |json: &str| named_in(json.as_bytes());
        assert_eq!(named(r#"{"tenant_id":"acme"}"#).as_deref(), Some("acme"));
        let claimed = r#"{"input":{"tool_name":"t","tenant_id":"acme"}}"#;
        assert_eq!(named(claimed).as_deref(), Some("acme"));
        let of_the_model = r#"{"input":{"tool_input":{"tenant_id":"acme"}}}"#;
        assert_eq!(named(of_the_model), None);
        for none in [
            "",
            "null",
            "[]",
            "1",
            r#"{"tenant_id":""}"#,
            r#"{"tenant_id":1}"#,
        ] {
            assert_eq!(named(none), None, "{none}");
        }
        let long = "x".repeat(100);
        let named_long = named(&format!(r#"{{"tenant_id":"{long}"}}"#));
        assert_eq!(named_long, Some(ids::fairness_key(&long)));
    }

    #[test]
    fn only_the_newest_tasks_are_remembered() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let ids = runtime.block_on(async {
            let mut ids = Vec::new();
            for _ in 0..=REMEMBERED.get() {
                let id = tokio::spawn(async { task::try_id() }).await;
                ids.extend(id.ok().flatten());
            }
            ids
        });
        let mut remembered = none_remembered();
        for id in &ids {
            remembered.put(*id, "acme".to_owned());
        }
        assert_eq!(remembered.len(), REMEMBERED.get());
        assert!(!remembered.contains(&ids[0]));
    }
}
