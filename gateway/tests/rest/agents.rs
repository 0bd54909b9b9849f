//! The list of agents.

use everturn_gateway::{GatewayConfig, OfferedAgent};
use everturn_proto::{
    Responsible,
    turn::{AgentDefinition, AgentTool, ApprovalPolicy, Budget, FallbackModel},
};
use everturn_store::{LeftOut, LeftOutTool, WorkerId, WorkerLease, WorkerLeases};
use serde_json::json;

use crate::support::TestGateway;

fn agent(name: &str, tenants: &[&str]) -> OfferedAgent {
    let mut agent = OfferedAgent::named(name);
    agent.definition.tenants = tenants.iter().map(|name| (*name).to_owned()).collect();
    agent
}

#[tokio::test]
async fn an_agent_is_listed_with_its_tools_samples_and_limits() {
    let refund = AgentTool {
        name: "refund".to_owned(),
        approval: Some(ApprovalPolicy::default()),
        ..AgentTool::default()
    };
    let definition = AgentDefinition {
        provider: "openai".to_owned(),
        model: Some("gpt-5-mini".to_owned()),
        models: vec![FallbackModel {
            provider: "openai".to_owned(),
            model: "gpt-5".to_owned(),
            ..FallbackModel::default()
        }],
        description: "Answers questions about orders".to_owned(),
        instructions: "Be confidential.".to_owned(),
        tools: vec![refund],
        max_steps: 20,
        turn_timeout_ms: Some(60_000),
        budget: Some(Budget {
            tokens: Some(9000),
            nano_usd: Some(500_000_000),
            time_ms: Some(30_000),
            ..Budget::default()
        }),
        ..agent("support", &[]).definition
    };
    let support = OfferedAgent {
        definition,
        samples: vec!["Where is my order?".to_owned()],
        responsible: Responsible {
            owner: Some("Orders".to_owned()),
            contact: None,
        },
    };
    let gateway = TestGateway::with(GatewayConfig {
        agents: vec![support, agent("of_others", &["acme"])],
        ..GatewayConfig::default()
    });
    let gateway = gateway.await;
    let answer = gateway.get("/agents").await;
    assert_eq!(
        answer.json(),
        json!({
            "agents": [{
                "name": "support",
                "description": "Answers questions about orders",
                "model": "openai/gpt-5-mini",
                "models": ["openai/gpt-5-mini", "openai/gpt-5"],
                "tools": [{"name": "refund", "kind": "worker", "needs_approval": true}],
                "left_out_tools": [],
                "samples": ["Where is my order?"],
                "limits": {"max_steps": 20, "turn_timeout_ms": 30_000, "turn_tokens": 9000, "turn_usd": "0.5"},
            }],
            "default_agent": null,
        }),
        "an agent of another tenant is not listed, and neither instructions nor owners are shown"
    );
}

#[tokio::test]
async fn the_default_agent_is_named_if_the_tenant_has_it() {
    let gateway = TestGateway::start().await;
    let answer = gateway.get("/agents").await.json();
    assert_eq!(answer["default_agent"], "default");
    assert_eq!(answer["agents"][0]["model"], json!(null));
    assert_eq!(answer["agents"][0]["models"], json!([]));
}

#[tokio::test]
async fn tools_that_workers_leave_out_are_shown_to_their_tenant() {
    let gateway = TestGateway::start().await;
    let database = &gateway.store.database;
    let worker = WorkerId::random();
    let lease = WorkerLease {
        identity: worker.identity("w"),
        worker: worker.clone(),
        duration: std::time::Duration::from_secs(5),
    };
    database.renew_lease(&lease).await.unwrap();
    let tool = |tenant: &str| LeftOutTool {
        tenant_id: tenant.to_owned(),
        agent: "default".to_owned(),
        tool: "crm__search".to_owned(),
        model: "openai/gpt-5".to_owned(),
        reason: format!("of {tenant}"),
    };
    let told = [tool("default"), tool("acme")];
    database.tell_left_out(&worker, &told).await.unwrap();
    let answer = gateway.get("/agents").await.json();
    assert_eq!(
        answer["agents"][0]["left_out_tools"],
        json!([{"tool": "crm__search", "model": "openai/gpt-5", "reason": "of default"}])
    );
}
