//! Servers that want a token for somebody else, or the client's secret: they get neither.

use std::fs;

use everturn_tests::{
    events::error,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use super::{
    ID, SECRET,
    authority::{Attacker, Authority, Says},
    config, turn,
};

/// What each attack changes, and the code that the model reads.
type Attack = (&'static str, &'static str, fn(&mut Says, &str));

const ATTACKS: [Attack; 8] = [
    // A token for somebody else's server, which the attacker would then use there.
    ("resource", "mcp_metadata_refused", |says, other| {
        says.resource = Some(format!("{other}/mcp"));
    }),
    // An authorization server of the attacker's own, to which the secret would go.
    ("server", "mcp_metadata_refused", |says, other| {
        says.authorization_server = Some(other.to_owned());
    }),
    // Requests to addresses that the attacker cannot reach.
    ("metadata", "mcp_address_refused", |says, other| {
        says.resource_metadata = Some(format!("{other}/about"));
    }),
    ("cloud", "mcp_address_refused", |says, _| {
        says.resource_metadata = Some("https://169.254.169.254/latest".to_owned());
    }),
    ("plain", "mcp_metadata_refused", |says, _| {
        says.resource_metadata = Some("http://metadata.example.com/".to_owned());
    }),
    // Metadata of another issuer (a mix-up of two).
    ("issuer", "mcp_metadata_refused", |says, other| {
        says.issuer = Some(other.to_owned());
    }),
    ("endpoint", "mcp_address_refused", |says, other| {
        says.token_endpoint = Some(format!("{other}/token"));
    }),
    ("moved", "mcp_authorization_unavailable", |says, other| {
        says.moved = Some(format!("{other}/token"));
    }),
];

#[tokio::test]
async fn an_attackers_server_gets_neither_a_token_nor_the_secret() {
    let attacker = Attacker::start().await;
    let mut servers = Vec::new();
    for (name, _, change) in ATTACKS {
        let authority = Authority::start(&[(ID, SECRET)]).await;
        authority.say(|says| change(says, &attacker.url()));
        servers.push((name, authority));
    }
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => ATTACKS.iter().fold(Reply::text(""), |reply, (name, _, _)| {
            reply.call(&format!("{name}__whoami"), &json!({}))
        }),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    fs::write(stack.path("secret"), SECRET).unwrap();
    let client = format!("client_id = \"{ID}\"\nclient_secret_file = \"secret\"");
    let tables = servers
        .iter()
        .map(|(name, it)| it.tables(name, "", &client));
    let allowed: Vec<_> = servers.iter().map(|(_, it)| it.allowed()).collect();
    let names = ATTACKS.map(|(name, _, _)| name);
    stack.configure(&config(&names, &allowed, &tables.collect::<String>()));
    let _running = stack.start_with_one_worker().await;
    let events = turn(&stack).await;
    for (name, code, _) in ATTACKS {
        let said = error(&events, &format!("{name}__whoami"));
        assert!(said.contains(code), "{name}: {said}");
        assert!(!said.contains("127.0.0.1"), "{name}: {said}");
    }
    for (name, authority) in &servers {
        assert!(authority.tokens().is_empty(), "{name}");
        let was_asked = authority.asked().contains(&"/token".to_owned());
        assert_eq!(was_asked, *name == "moved", "{name}: the secret stays here");
    }
    assert_eq!(attacker.heard(), Vec::<String>::new());
}

/// An authorization server is not exempt from the rules of other requests because the operator has named it, and a token goes
/// to its server alone.
#[tokio::test]
async fn nothing_goes_where_it_is_not_allowed_to() {
    let attacker = Attacker::start().await;
    let [private, moved] = [
        Authority::start(&[(ID, SECRET)]).await,
        Authority::start(&[(ID, SECRET)]).await,
    ];
    moved.say(|says| says.server_moved = Some(attacker.url()));
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("private__whoami", &json!({}))
            .call("moved__whoami", &json!({})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    fs::write(stack.path("secret"), SECRET).unwrap();
    let client = format!("client_id = \"{ID}\"\nclient_secret_file = \"secret\"");
    let tables = [("private", &private), ("moved", &moved)]
        .map(|(name, authority)| authority.tables(name, "", &client));
    stack.configure(&config(
        &["private", "moved"],
        &[moved.allowed()],
        &tables.concat(),
    ));
    let _running = stack.start_with_one_worker().await;
    let events = turn(&stack).await;
    let said = error(&events, "private__whoami");
    assert!(said.contains("mcp_address_refused"), "{said}");
    stack.logged("worker", "`[egress] allow`").await;
    assert_eq!(private.asked(), Vec::<String>::new());
    error(&events, "moved__whoami");
    assert_eq!(moved.tokens().len(), 1, "there was a token to take along");
    assert_eq!(attacker.heard(), Vec::<String>::new());
}
