//! Turns on each wire, with a mock of the providers that another project has written: one with two parallel tools, and one for
//! each way in which a provider fails.

mod failures;

use everturn_tests::{
    aimock::Aimock,
    events::{data, result, types},
    model::{Model, Reply},
    stack::Stack,
};
use serde_json::json;

const QUESTION: &str = "What is 21 * 2, and what time is it in Tokyo?";

/// Kinds of providers, and the path of their API at the mock.
const WIRES: [(&str, &str); 3] = [("openai", "v1"), ("anthropic", "v1"), ("gemini", "v1beta")];

/// The provider of a kind, and its agent, which has these keys.
fn tables(kind: &str, url: &str, keys: &str) -> String {
    format!(
        "[providers.{kind}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_key_env = \"SCRIPTED_KEY\"\n\
         [agents.{kind}]\nprovider = \"{kind}\"\nmodel = \"a-model\"\n{keys}\n"
    )
}

#[tokio::test]
async fn a_turn_with_tools_on_each_wire() {
    let aimock = Aimock::start().await;
    let stack = Stack::new(Model::start(|_| Reply::error(500, "not this one")).await).await;
    for (kind, path) in WIRES {
        let keys = "tools = [\"calculate\", \"current_time\"]";
        stack.configure(&tables(kind, &aimock.base_url(path), keys));
    }
    let _running = stack.start().await;
    for (kind, _) in WIRES {
        let client = stack.client();
        let conversation = client.create_conversation(Some(kind)).await.unwrap();
        client.submit(&conversation, QUESTION, None).await.unwrap();
        let events = stack.ended(&conversation, 1).await;
        let expected = "user_message thought act act observe observe assistant_message complete";
        assert_eq!(types(&events), expected, "{kind}: {events:#?}");
        let thought = data(&events, "thought")[0];
        assert_eq!(thought["thought"], "I need two tools.", "{kind}");
        assert_eq!(thought["reasoning"], "A product and a time.", "{kind}");
        assert_eq!(result(&events, "calculate")["value"], "42", "{kind}");
        let answer = data(&events, "assistant_message")[0];
        assert_eq!(answer["content"], "It is 42 and late in Tokyo.", "{kind}");
    }
    // The mock signs Anthropic's reasoning. The signature is stored with its maker, and is sent to no other model.
    let stored = stack.dump().await;
    assert!(stored.contains("anthropic/a-model"), "{stored}");
    let requests = aimock.requests().await;
    let answered = requests
        .iter()
        .filter(|request| request["response"]["status"] == json!(200));
    assert_eq!(answered.count(), 2 * WIRES.len(), "each step is asked once");
}
