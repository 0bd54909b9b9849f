//! The failures of agents: who sees them, and how they are paged and counted.

use everturn_gateway::auth::Secret;
use everturn_store::Access;
use serde_json::{Value, json};

use super::{config, gateway, key};
use crate::support::{Answer, TestGateway};

/// Three failed turns and a completed turn of a tenant.
fn fail(gateway: &TestGateway, tenant: &str) {
    for (number, agent, code) in [(1, "a", "x"), (2, "b", "x"), (3, "a", "y")] {
        let (conversation, execution) =
            (format!("{tenant}~c{number}"), format!("{tenant}{number}"));
        gateway.store.add(&format!("c{number}"), tenant);
        gateway.store.begin(&conversation, "m", &execution);
        let day = number.to_string();
        gateway.store.run(
            "UPDATE agent_executions SET status = 'failed', agent = $2, error_code = $3, error_message = 'Why.',
                finished_at = '2026-11-0' || $4 || 'T12:00:00+00:00' WHERE id = $1",
            &[&execution, agent, code, &day],
        );
    }
}

const PERIOD: &str = "since=2026-11-01T00:00:00Z&until=2026-12-01T00:00:00Z";

async fn get(gateway: &TestGateway, key: &Secret, query: &str) -> Answer {
    let path = format!("/api/v1/admin/failures{query}");
    gateway.bearer(("GET", &path), &key.reveal()).await
}

fn ids(page: &Value) -> Vec<String> {
    let rows = page["failures"].as_array().unwrap().iter();
    rows.map(|row| row["agent_execution_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_admin_sees_the_failures_of_the_tenant() {
    let gateway = gateway(config()).await;
    for tenant in ["acme", "other"] {
        fail(&gateway, tenant);
    }
    let admin = key(&gateway, Access::tenant("acme"), "admin", None).await;
    let get = async |query: &str| get(&gateway, &admin, query).await.json();
    let list = async |query: &str| get(&format!("?{PERIOD}{query}")).await;
    let all = list("").await;
    assert_eq!(ids(&all), ["acme3", "acme2", "acme1"]);
    assert_eq!(
        all["failures"][0],
        json!({"failed_at": "2026-11-03T12:00:00.000Z", "started_at": all["failures"][0]["started_at"],
            "tenant": "acme", "agent": "a", "code": "y", "message": "Why.", "attempts": 0, "conversation_id": "c3",
            "message_id": "m", "agent_execution_id": "acme3", "parent_execution_id": null})
    );
    assert_eq!(ids(&list("&agent=a").await), ["acme3", "acme1"]);
    assert_eq!(ids(&list("&code=x").await), ["acme2", "acme1"]);
    let first = list("&limit=2").await;
    assert_eq!(ids(&first), ["acme3", "acme2"]);
    let next = first["next_after"].as_str().unwrap();
    let rest = list(&format!("&limit=2&after={next}")).await;
    assert_eq!(
        (ids(&rest), &rest["next_after"]),
        (vec!["acme1".to_owned()], &json!(null))
    );
    let day = "?since=2026-11-02T00:00:00Z&until=2026-11-03T00:00:00Z";
    assert_eq!(ids(&get(day).await), ["acme2"]);
    assert_eq!(ids(&get("").await), [""; 0], "the last day");

    let counts = get(&format!("/counts?{PERIOD}&agent=a")).await;
    let counts = counts["counts"].as_array().unwrap().iter();
    let counts: Vec<_> = counts
        .map(|row| json!([row["code"], row["failures"]]))
        .collect();
    assert_eq!(counts, [json!(["x", 1]), json!(["y", 1])]);
}

#[tokio::test]
async fn only_an_admin_of_all_sees_failures_of_other_tenants() {
    let gateway = gateway(config()).await;
    for tenant in ["acme", "other"] {
        fail(&gateway, tenant);
    }
    let [acme, other] = ["acme", "other"].map(Access::tenant);
    let admin = key(&gateway, acme.clone(), "admin", None).await;
    let of_all = key(&gateway, other, "admin:all", None).await;
    let reader = key(&gateway, acme, "read,write", None).await;
    let get = async |key: &Secret, query: &str| get(&gateway, key, query).await;
    let of_both = get(&of_all, &format!("?{PERIOD}&code=y")).await.json();
    assert_eq!(ids(&of_both), ["other3", "acme3"]);
    let of_other = get(&of_all, &format!("?{PERIOD}&code=y&tenant=acme"))
        .await
        .json();
    assert_eq!(ids(&of_other), ["acme3"]);
    for path in ["", "/counts"] {
        let foreign = get(&admin, &format!("{path}?tenant=other")).await;
        foreign.assert_problem(403, "insufficient_scope");
        let refused = get(&reader, path).await;
        refused.assert_problem(403, "insufficient_scope");
        for bad in [
            "since=yesterday",
            "until=2026-11-30",
            "agent=%00",
            "tenant=a~b",
        ] {
            let refused = get(&admin, &format!("{path}?{bad}")).await;
            refused.assert_problem(400, "invalid_parameter");
        }
    }
    for bad in ["limit=0", "limit=501", "after=x"] {
        let refused = get(&admin, &format!("?{bad}")).await;
        refused.assert_problem(400, "invalid_parameter");
    }
}
