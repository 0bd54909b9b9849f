//! The secret of a client, and the tokens that it gets, whatever the server and the authorization server repeat of them.

use std::time::Duration;

use everturn_tests::{
    events::{data, observe},
    model::{Model, Reply, Request},
    wait,
};
use serde_json::json;

use super::{Secret, Watched, assert_without};
use crate::embedded::mcp::oauth::authority::{Authority, SAID};

#[tokio::test]
async fn the_secret_of_a_client_and_its_tokens_stay_where_they_are() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("I ask.")
            .call("notes__whoami", &json!({}))
            .call("wrong__whoami", &json!({})),
        _ => Reply::text("Done."),
    });
    let secret = Secret::new("NOTES_SECRET");
    let authority = Authority::start(&[("everturn", &secret.value)]).await;
    authority.say(|says| says.repeats = true);
    authority.tokens_hold(Duration::from_secs(3));
    // It knows the client by another secret, and repeats the one that it is sent.
    let other = Authority::start(&[("everturn", "another secret")]).await;
    let client = "client_id = \"everturn\"\nclient_secret_env = \"NOTES_SECRET\"";
    let tables = [
        authority.tables("notes", "", client),
        other.tables("wrong", "", client),
    ];
    let config = format!(
        "[agents.talks]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"notes__*\", \"wrong__*\"]\n\
         [egress]\nallow = [\"{}\", \"{}\"]\n{}",
        authority.allowed(),
        other.allowed(),
        tables.concat()
    );
    let mut secrets = vec![secret];
    let watched = Watched::start(model.await, &secrets, |stack| stack.configure(&config)).await;

    let client = watched.stack.client();
    let mut conversations = Vec::new();
    // The second turn has another token.
    for _ in 0..2 {
        let conversation = client.create_conversation(Some("talks")).await.unwrap();
        client.submit(&conversation, "go", None).await.unwrap();
        let events = watched.stack.ended(&conversation, 1).await;
        assert_eq!(data(&events, "complete").len(), 1, "{events:#?}");
        let said = observe(&events, "notes__whoami").to_string();
        assert!(said.contains(&format!("{SAID} ***")), "{said}");
        let refused = observe(&events, "wrong__whoami").to_string();
        assert!(refused.contains("mcp_client_refused"), "{refused}");
        conversations.push(conversation);
        wait::until("the token has ended", || async {
            authority.has_ended().then_some(())
        })
        .await;
    }
    let tokens = authority.tokens();
    assert!(tokens.len() >= 2, "{}", tokens.len());
    secrets.extend(tokens.iter().map(|token| Secret {
        variable: "a token".to_owned(),
        value: token.value.trim_start_matches("everturn.").to_owned(),
    }));
    let requests = watched.stack.model.requests();
    let told: String = requests.iter().map(|it| it.body.to_string()).collect();
    assert!(
        told.contains(SAID),
        "descriptions and results go to the model"
    );
    for secret in &secrets {
        assert_without(secret, "what the model is told", &told);
    }
    watched.holds_none(&secrets, &conversations, SAID).await;
}
