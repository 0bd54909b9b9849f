//! The owners of agents, which only an admin of every tenant sees.

use everturn_gateway::{GatewayConfig, OfferedAgent};
use everturn_proto::Responsible;
use everturn_store::Access;
use serde_json::Value;

use super::{config, key};
use crate::support::TestGateway;

#[tokio::test]
async fn only_an_admin_of_every_tenant_sees_the_owner_of_an_agent() {
    let mut agent = OfferedAgent::named("support");
    agent.responsible = Responsible {
        owner: Some("Orders".to_owned()),
        contact: Some("#orders".to_owned()),
    };
    let gateway = TestGateway::with(GatewayConfig {
        auth: config(),
        agents: vec![agent],
        ..GatewayConfig::default()
    })
    .await;
    for (scopes, sees) in [("read write admin", false), ("read admin:all", true)] {
        let key = key(&gateway, Access::tenant("acme"), scopes, None).await;
        let answer = gateway.bearer(("GET", "/agents"), &key.reveal()).await;
        let agent = &answer.json()["agents"][0];
        let named = ["owner", "contact"].map(|field| agent.get(field).and_then(Value::as_str));
        let wanted = [Some("Orders"), Some("#orders")].map(|text| text.filter(|_| sees));
        assert_eq!(named, wanted, "{scopes}");
    }
}
