//! The sums of a tenant: who sees them, and how they are paged.

use everturn_store::Access;
use serde_json::json;

use super::{config, gateway, key};

#[tokio::test]
async fn a_tenant_sees_its_own_sums_and_an_owner_none() {
    let gateway = gateway(config()).await;
    for tenant in ["acme", "other"] {
        let secret = key(&gateway, Access::tenant(tenant), "read", None).await;
        let model = format!("of/{tenant}");
        for day in ["2026-11-01", "2026-11-02", "2026-11-03"] {
            gateway.store.run(
                "INSERT INTO usage_days VALUES ($1, $2, $3, 'default', 0, 1, 0, 0, 0, 0, 0, 1500000, 0, 0, 0, 0)",
                &[tenant, day, &model],
            );
        }
        let ask = async |query: &str| {
            let path = format!("/api/v1/usage?from=2026-11-01&{query}");
            gateway.bearer(("GET", &path), &secret.reveal()).await
        };
        let first = ask("to=2026-11-30&limit=2").await.json();
        let shown = |page: &serde_json::Value| {
            let rows = page["usage"].as_array().unwrap().clone();
            let row = |row: serde_json::Value| json!([row["day"], row["model"], row["cost_usd"]]);
            rows.into_iter().map(row).collect::<Vec<_>>()
        };
        let day = |day: &str| json!([day, model, "0.0015"]);
        assert_eq!(shown(&first), [day("2026-11-01"), day("2026-11-02")]);
        let next = first["next_after"].as_str().unwrap();
        let rest = ask(&format!("to=2026-11-30&limit=2&after={next}"))
            .await
            .json();
        assert_eq!(shown(&rest), [day("2026-11-03")]);
        assert_eq!(rest["next_after"], json!(null));
        let by_agent = ask("to=2026-11-01&by=agent").await.json();
        let row = &by_agent["usage"][0];
        assert_eq!(row["agent"], "default");
        assert_eq!(row["model"], json!(null));
        assert_eq!(row["cost_usd"], "0.0015");
        let of_another = ask("to=2026-11-30&agent=another").await.json();
        assert_eq!(of_another["usage"], json!([]));
        let one = ask("to=2026-11-01").await.json();
        assert_eq!(shown(&one), [day("2026-11-01")]);
        for bad in [
            "to=x",
            "to=2026-11-31",
            "to=%2B12026-1-1",
            "limit=0",
            "limit=1001",
            "after=x",
            "by=user",
            "agent=%20",
        ] {
            ask(bad).await.assert_problem(400, "invalid_parameter");
        }
    }
    let owner = key(&gateway, Access::owner("acme", "ann"), "read", None).await;
    let path = ("GET", "/api/v1/usage?from=2026-11-01&to=2026-11-30");
    let none = gateway.bearer(path, &owner.reveal()).await.json();
    assert_eq!(none, json!({"usage": [], "tools": [], "next_after": null}));
    let writer = key(&gateway, Access::tenant("acme"), "write", None).await;
    let refused = gateway.bearer(path, &writer.reveal()).await;
    refused.assert_problem(403, "insufficient_scope");
}

#[tokio::test]
async fn a_tenant_sees_the_calls_of_its_tools() {
    let gateway = gateway(config()).await;
    for tenant in ["acme", "other"] {
        let secret = key(&gateway, Access::tenant(tenant), "read", None).await;
        let ask = async |query: &str| {
            let path = format!("/api/v1/usage?from=2026-11-01&{query}");
            gateway.bearer(("GET", &path), &secret.reveal()).await
        };
        for (day, tool) in [
            ("2026-11-01", "a"),
            ("2026-11-01", "b"),
            ("2026-12-01", "a"),
        ] {
            gateway.store.run(
                "INSERT INTO tool_usage_days VALUES ($1, $2, $3, 'default', 0, 3, 1, 250)",
                &[tenant, day, tool],
            );
        }
        let tools = ask("to=2026-11-30&by=tool&limit=1").await.json();
        let row = |tool: &str| json!({"day": "2026-11-01", "tool": tool, "calls": 3, "failed_calls": 1, "duration_ms": 250});
        let page = |tool: &str, next: Option<&str>| json!({"usage": [], "tools": [row(tool)], "next_after": next});
        assert_eq!(tools, page("a", Some("2026-11-01~a")));
        let rest = ask("to=2026-11-30&by=tool&limit=1&after=2026-11-01~a").await;
        assert_eq!(rest.json(), page("b", None));
        let of_another = ask("to=2026-11-30&by=tool&agent=another").await.json();
        assert_eq!(of_another["tools"], json!([]));
    }
}
