//! A response that runs on in the background keeps what its call has reserved of a budget, whatever happens to its
//! worker: other calls of the turn cannot take it, and it is neither given back nor taken twice.

use std::{future::ready, ops::RangeInclusive};

use everturn_tests::{
    events::{count, data},
    model::{CallUsage, Model, Reply, Request},
    responses::{Responses, Script},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// What each call takes that is not in the background.
const EACH: CallUsage = CallUsage {
    input_tokens: 2000,
    output_tokens: 500,
    cached_tokens: 0,
    reasoning_tokens: 0,
};

/// The response in the background reserves some 8,100 tokens, and a call of the busy agent 1,200 to 3,100. The first
/// call of the turn takes 2,500, and the one that is cut what it had reserved. Of the rest, the busy agent makes two or
/// three calls. If the response kept nothing, it would be five or more; if it reserved a second time, there would not
/// be enough left for it.
const LIMIT: &str = "tokens = 19_000";
const CALLS_OF_BUSY: RangeInclusive<u64> = 2..=3;

/// Gives two tasks away: to an agent that thinks in the background, and to one that never ends. The first call of the latter is
/// held, so that its worker dies with it.
fn script(request: &Request) -> Reply {
    let is_busy = request.last("system") == "busy";
    let reply = match (is_busy, request.results_since_user()) {
        (true, _) => Reply::text("One more.").call("test_read", &json!({})),
        (false, 0) => ["slow", "busy"]
            .into_iter()
            .fold(Reply::text("I share this out."), |reply, agent| {
                reply.call("delegate", &json!({"agent": agent, "task": "do it"}))
            }),
        (false, _) => Reply::text("It is done."),
    };
    let is_first = is_busy && request.number == 2;
    let reply = reply.taking(EACH);
    if is_first { reply.held() } else { reply }
}

fn agents(provider: &Responses) -> String {
    let keys = "llm_timeout = \"1h\"\nmax_steps = 100\n";
    let url = provider.base_url();
    format!(
        "delegates = [\"slow\", \"busy\"]\nmax_output_tokens = 1000\n{keys}[agents.default.budget]\n{LIMIT}\n\
         [agents.busy]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"busy\"\n\
         tools = [\"test_read\"]\nmax_output_tokens = 1000\n{keys}\
         [agents.slow]\nprovider = \"background\"\nmodel = \"thinker\"\nmax_output_tokens = 8000\n{keys}\
         [providers.background]\nkind = \"openai_responses\"\nbase_url = \"{url}\"\napi_key_env = \"SCRIPTED_KEY\"\n"
    )
}

/// What the tenant took of a model: its calls and those that were cut, and its tokens.
fn sums(page: &Value, model: &str) -> [u64; 3] {
    let days = page["usage"].as_array().unwrap();
    let day = days.iter().find(|day| day["model"] == model);
    let day = day.unwrap_or_else(|| panic!("{model} was called: {page:#}"));
    let number = |value: &Value| value.as_u64().unwrap();
    let usage = &day["usage"];
    let tokens = number(&usage["input_tokens"]) + number(&usage["output_tokens"]);
    [number(&day["calls"]), number(&day["cut_calls"]), tokens]
}

#[tokio::test]
async fn a_response_that_runs_on_keeps_its_part_of_the_budget() {
    let provider = Responses::start(|_| Script::text("I have thought about it.").held()).await;
    let stack = Stack::with_agent(Model::start(script).await, &agents(&provider)).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("share it out").await;
    stack.asked(2).await;
    stack.has_noted_response().await;
    worker.kill().await;
    let next = stack.worker();
    provider.read_again(1).await;

    // The busy agent takes what is left, while the response still runs.
    stack.saw(&conversation, "error").await;
    let events = stack.events(&conversation).await;
    let error = data(&events, "error")[0];
    assert_eq!(error["code"], "budget_exhausted", "{error:#}");
    // The first call of the turn and the one that was cut are not among these.
    let of_busy = stack.model.requests().len() as u64 - 2;
    assert!(CALLS_OF_BUSY.contains(&of_busy), "{of_busy} calls");

    // It is killed once more: what the response has reserved is still not for others, and its answer settles it.
    next.kill().await;
    let _last = stack.worker();
    provider.read_again(2).await;
    provider.release();
    let events = stack.ended(&conversation, 1).await;
    let ends = "that of the agent whose response ran on, and that of the turn";
    assert_eq!(count(&events, "complete"), 2, "{ends}: {events:#?}");
    assert_eq!(count(&events, "error"), 1, "that of the busy agent alone");
    let paid = wait::until("the response is paid", || {
        ready(provider.paid().first().cloned())
    })
    .await;
    assert_eq!(paid["background"], true);
    assert_eq!(provider.paid().len(), 1, "nothing is paid twice");

    let page = stack.get_api("/api/v1/usage").await;
    assert_eq!(sums(&page, "background/thinker"), [1, 0, 15]);
    // The first and the last call of the turn's own agent, and those of the busy one.
    let calls = 2 + of_busy;
    let each = EACH.input_tokens + EACH.output_tokens;
    assert_eq!(sums(&page, "scripted/scripted"), [calls, 1, calls * each]);
    let end = data(&events, "complete")[1];
    let tokens = ["input_tokens", "output_tokens"].map(|key| end["usage"][key].as_u64().unwrap());
    assert_eq!(tokens.iter().sum::<u64>(), calls * each + 15, "{end:#}");
}
