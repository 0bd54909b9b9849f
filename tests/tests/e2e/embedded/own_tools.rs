//! Tools of a user's own binary, and tools that misbehave. Each call ends with a clear `observe`, and the worker takes
//! the next turn.

use std::path::Path;

use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// Largest memory that the worker may use, in bytes. It uses 65 MB here, and the output of the tool has 1 GB.
const MAX_PEAK_BYTES: u64 = 300 << 20;

#[tokio::test]
async fn a_binary_with_a_tool_of_its_own_runs_turns() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("word_count", &json!({"text": "one two  three"}))
            .call("word_count", &json!({"text": " "}))
            .call("word_count", &json!({"txt": "typo"})),
        _ => Reply::text("Three."),
    });
    let stack = Stack::with_agent(model.await, "tools = [\"word_count\"]\n").await;
    let _running = (stack.gateway().await, stack.worker_of("own-tool"));
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    let observes = data(&events, "observe");
    let result = |wanted: &str| {
        observes
            .iter()
            .filter(|observe| observe["result"].to_string().contains(wanted))
            .count()
    };
    assert_eq!(result(r#""words":3"#), 1, "{observes:#?}");
    assert_eq!(result("no words"), 1, "{observes:#?}");
    assert_eq!(result("'txt' was unexpected"), 1, "{observes:#?}");
    let offered = &stack.model.requests()[0].body["tools"][0]["function"];
    assert_eq!(
        offered["description"],
        "Counts the words and characters of a text."
    );
    assert_eq!(
        offered["parameters"]["properties"]["text"]["description"],
        "The text whose words are counted."
    );
}

/// Several tools block at once, more than the worker's runtime has threads. They would stop the worker if they ran on
/// those threads.
#[tokio::test]
async fn hostile_tools_are_observed_and_the_worker_lives() {
    let acts = [
        "hang",
        "block",
        "block",
        "block",
        "flood",
        "program_flood",
        "invalid_utf8",
        "nul",
        "fork",
        "orphan",
    ];
    let model = Model::start(move |request: &Request| {
        match (request.last("user").as_str(), request.results_since_user()) {
            ("misbehave", 0) => acts.iter().fold(Reply::text(""), |reply, act| {
                reply.call("test_hostile", &json!({"act": act}))
            }),
            ("again", 0) => Reply::text("").call("test_hostile", &json!({"act": "nul"})),
            _ => Reply::text("I see."),
        }
    });
    let agent = "tools = [{ name = \"test_hostile\", timeout = \"10s\" }]\n";
    let stack = Stack::with_agent(model.await, agent).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("misbehave").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        events.last().unwrap()["event_type"],
        "complete",
        "{events:#?}"
    );

    let observes = data(&events, "observe");
    assert_eq!(observes.len(), acts.len());
    for observe in &observes {
        is_as_expected(&events, observe);
    }

    let pids = stack.effects();
    assert_eq!(pids.len(), 4, "three forked, one was left behind");
    gone(&pids).await;
    let peak = worker.peak_memory_bytes();
    assert!(peak < MAX_PEAK_BYTES, "a worker held {peak} bytes");

    let client = stack.client();
    client.submit(&conversation, "again", None).await.unwrap();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        events.last().unwrap()["event_type"],
        "complete",
        "{events:#?}"
    );
    // Three threads of tools are still blocked.
    assert_eq!(worker.terminate().await, Some(0));
}

#[tokio::test]
async fn programs_of_a_tool_die_with_its_worker() {
    let model =
        Model::start(|_: &Request| Reply::text("").call("test_hostile", &json!({"act": "fork"})));
    let stack = Stack::with_agent(model.await, "tools = [\"test_hostile\"]\n").await;
    let (worker, _gateway) = stack.start().await;
    stack.ask("fork").await;
    stack.had_effects(3).await;
    worker.kill().await;
    gone(&stack.effects()).await;
}

/// Waits until these processes have ended.
pub(crate) async fn gone(pids: &[String]) {
    for pid in pids {
        wait::until(&format!("process {pid} is gone"), || async {
            is_gone(pid).then_some(())
        })
        .await;
    }
}

/// Returns true when there is no such process, or only its entry in the process table is left (a zombie).
fn is_gone(pid: &str) -> bool {
    let process = Path::new("/proc").join(pid);
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The first thread of a killed process may have ended while another one still has its files.
    let threads = std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    threads <= 1
        && stat
            .rsplit_once(')')
            .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Returns what the model is told of a tool that misbehaved in this way.
fn is_as_expected(events: &[Value], observe: &Value) {
    let act = data(events, "act")
        .into_iter()
        .find(|act| act["execution_id"] == observe["execution_id"]);
    let act = act.unwrap()["tool_input"]["act"].as_str().unwrap();
    let result = &observe["result"];
    let has_error = |part: &str| result["error"].as_str().unwrap().contains(part);
    let is_as_expected = match act {
        "hang" | "block" | "fork" => has_error("did not finish within 10 s"),
        "flood" => has_error("more than 1048576 bytes"),
        "program_flood" => result["truncated"] == true,
        "invalid_utf8" => {
            *result == json!({"encoding": "base64", "type": "text/plain", "data": "Yf/+eg=="})
        }
        "nul" => result["encoding"] == "base64",
        "orphan" => result["is_cut"] == false,
        other => panic!("{other}"),
    };
    assert!(is_as_expected, "{act}: {observe:#}");
}

/// Returns the text of the last tool result in a request.
fn last_result(request: &Request) -> Value {
    serde_json::from_str(&request.last("tool")).unwrap()
}

fn offers(request: &Request, tool: &str) -> bool {
    let tools = request.body["tools"].as_array().unwrap();
    tools
        .iter()
        .any(|offered| offered["function"]["name"] == tool)
}

#[tokio::test]
async fn the_rest_of_a_long_result_is_read_with_a_tool() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        // The model makes two calls, one of them of a tool that it was not offered.
        0 => Reply::text("I look.")
            .call("read_result", &json!({"execution_id": "exec_0123456789ab"}))
            .call("test_read", &json!({"output_bytes": 40_000})),
        2 => {
            let cut = last_result(request);
            let rest = json!({
                "execution_id": cut["execution_id"],
                "offset_bytes": cut["next_offset_bytes"],
            });
            Reply::text("I read on.").call("read_result", &rest)
        }
        3 => {
            let piece = last_result(request);
            let rest = json!({
                "execution_id": piece["execution_id"],
                "offset_bytes": piece["next_offset_bytes"],
            });
            Reply::text("And on.").call("read_result", &rest)
        }
        _ => Reply::text("Done."),
    });
    let stack = Stack::with_agent(model.await, "tools = [\"test_read\"]\n").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("read").await;
    let events = stack.ended(&conversation, 1).await;
    let requests = stack.model.requests();
    assert!(!offers(&requests[0], "read_result") && offers(&requests[1], "read_result"));
    let observes = data(&events, "observe");
    assert_eq!(observes.len(), 4, "{events:#?}");
    let of = |tool: &str, is_error: bool| {
        let found = observes
            .iter()
            .filter(|observe| observe["tool_name"] == tool && observe["is_error"] == is_error);
        found.map(|observe| &observe["result"]).collect::<Vec<_>>()
    };
    let unknown = of("read_result", true);
    assert!(unknown[0].to_string().contains("no tool"), "{unknown:?}");
    let cut = of("test_read", false)[0];
    let mut whole = cut["text"].as_str().unwrap().to_owned();
    for piece in of("read_result", false) {
        assert_eq!(piece["total_bytes"], cut["total_bytes"]);
        whole.push_str(piece["text"].as_str().unwrap());
    }
    assert!(
        whole.len() > 40_000 && whole.ends_with('}'),
        "{} bytes",
        whole.len()
    );
}
