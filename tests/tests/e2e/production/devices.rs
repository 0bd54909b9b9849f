//! One person with several devices and conversations. A device that leaves a conversation and comes back while a turn
//! runs, and a device that stays, end with the same timeline, which is also what the gateway answers (invariant 8, a
//! cursor never expires).

use everturn_tests::{
    model::{Model, Reply, Request},
    random::Random,
    reader::{CursorIn, Cut, Left, Reader, View},
    stack::Stack,
};
use serde_json::{Value, json};

/// The last text of conversation A before the model holds its reply back.
const SO_FAR: &str = "So far I know ";

/// Script of the model. In conversation A it calls a tool, and its answer is held in the middle. In conversation B it
/// answers at once.
fn held(request: &Request) -> Reply {
    match (request.last("user").as_str(), request.results_since_user()) {
        ("A", 0) => Reply::text("Let me look.").call("test_read", &json!({"sleep_ms": 100})),
        ("A", _) => Reply::text(SO_FAR).held(),
        _ => Reply::text("Here is B."),
    }
}

/// Script of a model whose turns have two steps, each with a text of some words.
fn talkative(request: &Request) -> Reply {
    let about = request.last("user");
    let words = (0..200)
        .map(|number| format!("{about}ü{number} "))
        .collect();
    let reply = Reply::pieces(words, std::time::Duration::from_millis(3));
    if request.results_since_user() == 0 {
        reply.call("current_time", &json!({"time_zone": "Asia/Tokyo"}))
    } else {
        reply
    }
}

/// Reads on one connection until `is_satisfied` is true.
async fn read(reader: &mut Reader, gateway: &str, is_satisfied: impl Fn(&View) -> bool) {
    let left = reader
        .visit(gateway, CursorIn::Query, &mut Cut::never(), is_satisfied)
        .await
        .unwrap();
    assert_eq!(left, Left::Satisfied, "at event {}", reader.view.cursor());
}

/// Returns whether the reader sees conversation A in the middle of its answer.
fn sees_a_answer(view: &View) -> bool {
    view.open().any(|(_, text)| text == SO_FAR)
}

fn is_over(view: &View) -> bool {
    view.turns_ended() == 1
}

#[tokio::test]
async fn leave_a_for_b_and_come_back_while_a_runs() {
    let stack = Stack::new(Model::start(held).await).await.with_gateways(2);
    let _running = stack.start().await;
    let urls = [stack.gateway_url(0), stack.gateway_url(1)];
    let http = reqwest::Client::new();
    let (a, _) = stack.ask("A").await;

    let stays = async {
        let mut laptop = Reader::new(&http, &a);
        read(&mut laptop, &urls[1], is_over).await;
        laptop.view
    };
    let switches = async {
        let mut phone_a = Reader::new(&http, &a);
        read(&mut phone_a, &urls[0], sees_a_answer).await;

        let (b, _) = stack.ask("B").await;
        let mut phone_b = Reader::new(&http, &b);
        read(&mut phone_b, &urls[0], is_over).await;

        let status = stack
            .get(&format!("/conversations/{a}/execution-status"))
            .await;
        assert_eq!(
            (&status["is_running"], &status["last_sequence"]),
            (&json!(true), &json!(phone_a.view.cursor()))
        );
        // The model goes on with A when the phone, on another gateway now, sees again what it saw before it left.
        read(&mut phone_a, &urls[1], |view| {
            if sees_a_answer(view) {
                stack.model.release();
            }
            is_over(view)
        })
        .await;
        (phone_a.view, b, phone_b.view)
    };
    let (laptop, (phone_a, b, phone_b)) = tokio::join!(stays, switches);
    assert_eq!(laptop.events(), phone_a.events());
    for url in &urls {
        has_timeline(&http, url, &a, &laptop, 5).await;
        has_timeline(&http, url, &b, &phone_b, 2).await;
    }
}

#[tokio::test]
async fn switch_again_and_again_while_both_run() {
    let stack = Stack::new(Model::start(talkative).await)
        .await
        .with_gateways(2);
    let _running = stack.start().await;
    let urls = [stack.gateway_url(0), stack.gateway_url(1)];
    let http = reqwest::Client::new();
    let conversations = [stack.ask("A").await.0, stack.ask("B").await.0];

    let stays = async |at: usize| {
        let mut reader = Reader::new(&http, &conversations[at]);
        read(&mut reader, &urls[at], is_over).await;
        reader.view
    };
    let switches = async {
        let mut random = Random::new(7);
        let mut readers = conversations
            .each_ref()
            .map(|conversation| Reader::new(&http, conversation));
        let mut visits = 0;
        while !readers.iter().all(|reader| is_over(&reader.view)) {
            let reader = &mut readers[visits % 2];
            visits += 1;
            // Each visit may be longer than the last one, so that the reader comes to the end of every text.
            let mut look = Cut::within(1000 * visits, &mut random);
            let gateway = random.pick(&urls);
            let left = reader
                .visit(gateway, CursorIn::Header, &mut look, is_over)
                .await
                .unwrap();
            assert!(matches!(left, Left::Cut | Left::Satisfied), "{left:?}");
        }
        assert!(visits > 4, "{visits} visits are no switching");
        readers.map(|reader| reader.view)
    };
    let (stays_a, stays_b, switched) = tokio::join!(stays(0), stays(1), switches);
    for ((conversation, stayed), switched) in
        conversations.iter().zip([stays_a, stays_b]).zip(switched)
    {
        assert_eq!(stayed.events(), switched.events());
        has_timeline(&http, &urls[0], conversation, &switched, 5).await;
    }
}

/// Asserts that the gateway's timeline is what a device makes of the events that it saw, and has so many items.
async fn has_timeline(
    http: &reqwest::Client,
    gateway: &str,
    conversation: &str,
    view: &View,
    items: usize,
) {
    let url = format!("{gateway}/api/v1/agent/conversations/{conversation}/messages");
    let timeline: Value = http.get(url).send().await.unwrap().json().await.unwrap();
    let mut assembled: Vec<Value> = Vec::new();
    for event in view.events() {
        match (event["type"] == "complete", assembled.last_mut()) {
            (true, Some(answer)) => answer["usage"] = usage(event),
            _ => assembled.extend(item(event)),
        }
    }
    assert_eq!(
        timeline,
        json!({"conversationId": conversation, "timeline": assembled, "total": items, "nextBefore": null})
    );
}

/// Returns what the last item of a turn shows of what the turn took.
fn usage(complete: &Value) -> Value {
    let took = &complete["usage"];
    json!({"inputTokens": took["input_tokens"], "outputTokens": took["output_tokens"],
        "cachedTokens": took["cached_tokens"], "cacheWriteTokens": took["cache_write_tokens"],
        "reasoningTokens": took["reasoning_tokens"], "estimated": false})
}

/// Returns the item that a chat window shows for an event, as docs/api/events.md says.
fn item(event: &Value) -> Option<Value> {
    let (number, kind) = (&event["sequence_number"], event["type"].as_str().unwrap());
    let mut item = match kind {
        "user_message" | "assistant_message" => {
            json!({"type": kind, "id": event["message_id"], "content": event["content"]})
        }
        "thought" => json!({"type": kind, "content": event["thought"]}),
        "act" => json!({"type": "tool_call", "toolInput": event["tool_input"]}),
        "observe" => {
            json!({"type": "tool_result", "toolOutput": event["result"], "isError": event["is_error"]})
        }
        _ => return None,
    };
    if item["id"].is_null() {
        item["id"] = format!("{kind}-{number}").into();
    }
    if matches!(kind, "act" | "observe") {
        for (shown, field) in [
            ("toolName", "tool_name"),
            ("executionId", "execution_id"),
            ("callId", "call_id"),
        ] {
            item[shown] = event[field].clone();
        }
    }
    let created_at: chrono::DateTime<chrono::Utc> =
        event["created_at"].as_str().unwrap().parse().unwrap();
    for (shown, field) in [
        ("step", "step"),
        ("finish", "finish"),
        ("durationMs", "duration_ms"),
        ("title", "title"),
    ] {
        if !event[field].is_null() {
            item[shown] = event[field].clone();
        }
    }
    item["sequenceNumber"] = number.clone();
    item["timestamp"] = created_at.timestamp_millis().into();
    Some(item)
}
