//! Budgets: a turn ends at its limit with what it has, and its sums are those that the model has billed. Also after kill -9 at
//! each place between the claim of a call and the settling of what it took.

use std::time::{Duration, Instant};

use everturn_tests::{
    events::{count, data},
    model::{CallUsage, Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// What each call takes: 0.009 USD at [`PRICES`].
const EACH: CallUsage = CallUsage {
    input_tokens: 2000,
    output_tokens: 500,
    cached_tokens: 1000,
    reasoning_tokens: 100,
};

/// USD per million tokens. A call of [`EACH`] costs 1000 × 3 + 1000 × 1 + 400 × 10 + 100 × 10 millionths.
const PRICES: &str = "[models.\"scripted/scripted\"]\ninput = 3\ncached_input = 1\noutput = 10\n";
const NANO_USD_EACH: u64 = 9_000_000;

/// The places at which a worker is killed: after its claim, before and after it calls the model and settles what that took.
const PLACES: [&str; 4] = [
    "think.after_claim",
    "think.after_reserve",
    "think.before_checkpoint",
    "think.after_checkpoint",
];

/// A limit of a budget.
struct Limit {
    /// Its line in the configuration.
    key: &'static str,
    /// How many calls may be let through, cut ones not counted.
    calls: u64,
}

const STEPS: Limit = Limit {
    key: "steps = 5",
    calls: 5,
};
/// The fourth call reads some 2,200 tokens, as the provider has counted the call before, and may write 1,000; 2,500 are left.
const TOKENS: Limit = Limit {
    key: "tokens = 10_000",
    calls: 3,
};
/// The fifth call may cost some 0.017 USD, and 0.014 are left.
const MONEY: Limit = Limit {
    key: "usd = 0.05",
    calls: 4,
};

/// Never answers: each step asks for a tool.
fn endless(request: &Request) -> Reply {
    let text = format!("Step {}. ", request.results_since_user());
    Reply::text(&text)
        .call("test_read", &json!({}))
        .taking(EACH)
}

fn agent(budget: &str) -> String {
    format!(
        "llm_timeout = \"1h\"\ntools = [\"test_read\"]\nmax_output_tokens = 1000\nmax_steps = 100\n\
         [agents.default.budget]\n{budget}\n{PRICES}"
    )
}

/// What the tenant took, as the gateway says.
#[derive(Debug)]
struct Sums {
    calls: u64,
    tokens: u64,
    cost_usd: String,
    cut_calls: u64,
}

async fn sums(stack: &Stack) -> Sums {
    let page = stack.get_api("/api/v1/usage").await;
    let [day] = &page["usage"].as_array().unwrap()[..] else {
        panic!("one model on one day: {page:#}")
    };
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(day["model"], "scripted/scripted");
    Sums {
        calls: number(&day["calls"]),
        tokens: number(&day["usage"]["input_tokens"]) + number(&day["usage"]["output_tokens"]),
        cost_usd: day["cost_usd"].as_str().unwrap().to_owned(),
        cut_calls: number(&day["cut_calls"]),
    }
}

/// Asserts that the turn says what its calls took, and that this is what the model has billed, but for calls that were cut.
async fn assert_billed(stack: &Stack, conversation: &str, events: &[Value]) -> Sums {
    let sums = sums(stack).await;
    let ledger = stack.model.ledger();
    let paid = ledger.len() as u64;
    assert!(ledger.values().all(|usage| *usage == EACH));
    assert!(sums.calls <= paid, "{sums:?}, {paid} were paid");
    assert!(
        paid <= sums.calls + sums.cut_calls,
        "a call was paid that nobody counted: {sums:?}, {paid} were paid"
    );
    let tokens = |calls: u64| calls * (EACH.input_tokens + EACH.output_tokens);
    assert_eq!(sums.tokens, tokens(sums.calls), "{sums:?}");
    let cost_usd = everturn_proto::money::usd(sums.calls * NANO_USD_EACH);
    assert_eq!(sums.cost_usd, cost_usd);
    // The end of the turn tells what all of its agents took.
    let end = &events.last().unwrap()["event_data"];
    let expected = json!({
        "input_tokens": sums.calls * EACH.input_tokens,
        "output_tokens": sums.calls * EACH.output_tokens,
        "cached_tokens": sums.calls * EACH.cached_tokens,
        "cache_write_tokens": 0,
        "reasoning_tokens": sums.calls * EACH.reasoning_tokens,
        "estimated": false,
    });
    assert_eq!(
        (&end["usage"], &end["cost_usd"]),
        (&expected, &json!(cost_usd))
    );
    // The list tells what each agent took, and an agent what each of its steps took.
    let path = format!("/conversations/{conversation}/executions");
    let executions = stack.get(&path).await["executions"].clone();
    let mut listed = 0;
    for execution in executions.as_array().unwrap() {
        let id = execution["id"].as_str().unwrap();
        let shown = stack.get(&format!("{path}/{id}")).await;
        assert_eq!(shown["usage"], execution["usage"]);
        let steps = shown["step_usage"].as_array().unwrap();
        for step in steps {
            assert_eq!(step["cost_usd"], "0.009", "{step}");
            assert_eq!(step["usage"]["input_tokens"], EACH.input_tokens);
        }
        let calls = steps.len() as u64;
        assert_eq!(
            execution["usage"]["input_tokens"],
            calls * EACH.input_tokens
        );
        listed += calls;
    }
    assert_eq!(listed, sums.calls);
    sums
}

fn assert_exhausted(events: &[Value]) {
    let end = events.last().unwrap();
    assert_eq!(end["event_type"], "error", "{end:#}");
    assert_eq!(end["event_data"]["code"], "budget_exhausted", "{end:#}");
    println!("{}", end["event_data"]["message"]);
}

/// Runs a turn that would never end by itself until its budget is used up. The worker is killed at a place, and another one
/// goes on. Returns the events and what was billed.
async fn exhausts(
    model: Model,
    agent: &str,
    message: &str,
    killed_at: Option<&str>,
) -> (Vec<Value>, Sums) {
    let stack = Stack::with_agent(model, agent).await;
    let _gateway = stack.gateway().await;
    let worker = match killed_at {
        Some(place) => stack.worker_stopping_at(place),
        None => stack.worker(),
    };
    let (conversation, _) = stack.ask(message).await;
    let mut next = None;
    if let Some(place) = killed_at {
        stack.reached(place).await;
        worker.kill().await;
        next = Some(stack.worker());
    }
    let events = stack.ended(&conversation, 1).await;
    assert_exhausted(&events);
    let sums = assert_billed(&stack, &conversation, &events).await;
    drop(next);
    (events, sums)
}

async fn runs_into(limit: &Limit, killed_at: Option<&str>) {
    let (model, agent) = (Model::start(endless).await, agent(limit.key));
    let (events, sums) = exhausts(model, &agent, "go on and on", killed_at).await;
    let was_cut = matches!(
        killed_at,
        Some("think.after_reserve" | "think.before_checkpoint")
    );
    assert_eq!(sums.cut_calls, u64::from(was_cut), "{killed_at:?}");
    // A call that was cut counts with all that it might have taken, so that one call less may fit.
    let least = limit.calls - u64::from(was_cut);
    assert!(
        (least..=limit.calls).contains(&sums.calls),
        "{killed_at:?}: {sums:?}"
    );
    let kept = [count(&events, "thought"), count(&events, "observe")];
    assert_eq!(
        kept,
        [sums.calls; 2].map(|calls| usize::try_from(calls).unwrap())
    );
}

#[tokio::test]
async fn a_turn_ends_at_its_steps() {
    runs_into(&STEPS, None).await;
    for place in PLACES {
        runs_into(&STEPS, Some(place)).await;
    }
}

#[tokio::test]
async fn a_turn_ends_at_its_tokens() {
    runs_into(&TOKENS, None).await;
    for place in PLACES {
        runs_into(&TOKENS, Some(place)).await;
    }
}

#[tokio::test]
async fn a_turn_ends_at_its_money() {
    runs_into(&MONEY, None).await;
    for place in PLACES {
        runs_into(&MONEY, Some(place)).await;
    }
}

#[tokio::test]
async fn a_turn_ends_at_its_time_and_keeps_its_text() {
    let script = |request: &Request| match request.results_since_user() {
        0 => endless(request),
        _ => Reply::text("This much I have said.").held(),
    };
    let budget = "time = \"10s\"\ntokens = 1_000_000";
    let stack = Stack::with_agent(Model::start(script).await, &agent(budget)).await;
    let _running = stack.start().await;
    let begun = Instant::now();
    let (conversation, _) = stack.ask("take your time").await;
    let events = stack.ended(&conversation, 1).await;
    let took = begun.elapsed();
    assert_exhausted(&events);
    assert!((9..30).contains(&took.as_secs()), "{took:?}");
    let text = data(&events, "assistant_message");
    assert_eq!(text[0]["content"], "This much I have said.");
    let sums = assert_billed(&stack, &conversation, &events).await;
    assert_eq!(
        (sums.calls, sums.cut_calls),
        (1, 1),
        "the second call was cut"
    );
    assert_eq!(stack.model.requests().len(), 2);
}

/// A killed worker does not give the turn more time.
#[tokio::test]
async fn the_time_of_a_turn_counts_from_its_begin() {
    let script = |request: &Request| endless(request).held();
    let stack = Stack::with_agent(Model::start(script).await, &agent("time = \"10s\"")).await;
    let (worker, _gateway) = stack.start().await;
    let begun = Instant::now();
    let (conversation, _) = stack.ask("take your time").await;
    stack.asked(1).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_exhausted(&events);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

/// Returns the script of a turn that gives four tasks away at once, and whose sub-agents never answer.
fn tree(request: &Request) -> Reply {
    let is_helper = request.last("system") == "helper";
    if is_helper || request.results_since_user() > 0 {
        return endless(request);
    }
    let reply = Reply::text("I share this out.").taking(EACH);
    (0..4).fold(reply, |reply, task| {
        let arguments = json!({"agent": "helper", "task": format!("task {task}")});
        reply.call("delegate", &arguments)
    })
}

/// The limits of a tree, in which 22 calls fit and a further one does not: 0.198 USD, or 55,000 tokens.
const OF_TREE: [&str; 2] = ["usd = 0.2", "tokens = 56_000"];

/// Runs a tree of four sub-agents into one limit.
async fn a_tree_runs_into(limit: &str, killed_at: Option<&str>) {
    let keys = "llm_timeout = \"1h\"\ntools = [\"test_read\"]\nmax_output_tokens = 1000\nmax_steps = 100\n";
    let helper = format!(
        "[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"helper\"\n{keys}"
    );
    let agent = format!(
        "delegates = [\"helper\"]\n{keys}[agents.default.budget]\n{limit}\n{helper}\n{PRICES}"
    );
    let model = Model::start(tree).await;
    let (events, sums) = exhausts(model, &agent, "share it out", killed_at).await;
    let errors = data(&events, "error");
    assert_eq!(errors.len(), 5, "the turn and each of its sub-agents");
    assert!(
        errors
            .iter()
            .all(|error| error["code"] == "budget_exhausted")
    );
    // Each call reserves more than it takes: some 0.012 USD, or 3,200 tokens. So the last ones do not fit while others are
    // being made.
    assert!(sums.calls <= 22, "{limit}, {killed_at:?}: {sums:?}");
    let least = sums.calls + sums.cut_calls * 2;
    assert!(least >= 12, "{limit}, {killed_at:?}: {sums:?}");
}

#[tokio::test]
async fn a_tree_of_sub_agents_ends_at_one_limit_of_money() {
    a_tree_runs_into(OF_TREE[0], None).await;
    for place in PLACES {
        a_tree_runs_into(OF_TREE[0], Some(place)).await;
    }
}

#[tokio::test]
async fn a_tree_of_sub_agents_ends_at_one_limit_of_tokens() {
    a_tree_runs_into(OF_TREE[1], None).await;
    for place in PLACES {
        a_tree_runs_into(OF_TREE[1], Some(place)).await;
    }
}

#[tokio::test]
async fn a_conversation_ends_at_its_limit_over_several_turns() {
    let script = |_: &Request| Reply::text("Here you are.").taking(EACH);
    let budget = "conversation_usd = 0.02";
    let stack = Stack::with_agent(Model::start(script).await, &agent(budget)).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.ended(&conversation, 1).await;
    for (turns, content) in [(2, "two"), (3, "three")] {
        let client = stack.client();
        client.submit(&conversation, content, None).await.unwrap();
        stack.ended(&conversation, turns).await;
    }
    let events = stack.events(&conversation).await;
    assert_eq!(count(&events, "complete"), 2);
    assert_exhausted(&events);
    assert_eq!(
        stack.model.requests().len(),
        2,
        "the third turn calls nobody"
    );
    let (other, _) = stack.ask("another conversation").await;
    let events = stack.ended(&other, 1).await;
    assert_eq!(count(&events, "complete"), 1);
}

#[tokio::test]
async fn a_tenant_ends_at_the_budget_of_its_day() {
    let script = |_: &Request| Reply::text("Here you are.").taking(EACH);
    let keys = "max_output_tokens = 1000";
    let stack = Stack::with_agent(Model::start(script).await, keys).await;
    stack.configure(
        "[tenant_budget]\ntokens = 100_000_000\n[tenant_budget.tenants.default]\ntokens = 5_000",
    );
    let _running = stack.start().await;
    for number in 0..2 {
        let (conversation, _) = stack.ask("one more").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(count(&events, "complete"), 1, "turn {number}");
    }
    let (conversation, _) = stack.ask("one too many").await;
    let events = stack.ended(&conversation, 1).await;
    assert_exhausted(&events);
    assert_eq!(stack.model.requests().len(), 2);
}

/// A call that the provider refuses costs nothing, so it takes nothing of the budget.
#[tokio::test]
async fn a_refused_call_takes_nothing() {
    let script = |request: &Request| match request.number {
        1..=3 => Reply::error(429, "rate_limited"),
        _ => Reply::text("Here you are.").taking(EACH),
    };
    let stack = Stack::with_agent(Model::start(script).await, &agent("tokens = 3_000")).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("try").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "complete"), 1, "{events:#?}");
    let sums = assert_billed(&stack, &conversation, &events).await;
    assert_eq!((sums.calls, sums.cut_calls), (1, 0));
}
