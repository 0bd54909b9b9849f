//! Workers whose wall clock is wrong: no call is cut short, and none is made again, for that reason.

use std::{fs, process::Command};

use everturn_proto::words::FailureCode;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::json;

/// What a worker is told of the time of day. The monotonic clock stays right, as it does on a machine whose clock is set
/// wrong.
const WRONG_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long offset;
/* A worker forgets its environment once it has started. */
__attribute__((constructor)) static void start(void) { offset = atol(getenv("CLOCK_OFFSET_S")); }
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME && !failed) now->tv_sec += offset;
    return failed;
}
"#;

/// Starts a worker whose wall clock is so many seconds ahead.
fn worker_ahead(stack: &Stack, seconds: i64) -> Process {
    let (source, library) = (stack.path("clock.c"), stack.path("clock.so"));
    fs::write(&source, WRONG_CLOCK).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(compiler.status().unwrap().success());
    let library = library.display().to_string();
    let seconds = seconds.to_string();
    stack.worker_with(&[("LD_PRELOAD", &library), ("CLOCK_OFFSET_S", &seconds)])
}

fn answer(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I look.").call("test_read", &json!({})),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn a_turn_runs_on_a_worker_whose_clock_is_wrong() {
    for seconds in [3600, -3600] {
        let stack = Stack::new(Model::start(answer).await).await;
        let _gateway = stack.gateway().await;
        let _worker = worker_ahead(&stack, seconds);
        let (conversation, _) = stack.ask("hello").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message thought act observe assistant_message complete",
            "{seconds}"
        );
        let result = &events[3]["event_data"];
        assert_eq!(result["is_error"], false, "{result}");
        assert_eq!(stack.model.requests().len(), 2, "{seconds}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_end_is_paid_twice_whatever_the_clock_says() {
    for seconds in [3600, -3600] {
        let model = Model::start(|_: &Request| Reply::text("So f").held());
        let stack = Stack::with_agent(model.await, "llm_timeout = \"2s\"\n").await;
        let _gateway = stack.gateway().await;
        let _worker = worker_ahead(&stack, seconds);
        let (conversation, _) = stack.ask("hello").await;
        let events = stack.ended(&conversation, 1).await;
        let code = &events.last().unwrap()["event_data"]["code"];
        assert_eq!(code, FailureCode::LlmTimeout.as_str(), "{seconds}");
        assert_eq!(stack.model.requests().len(), 2, "{seconds}");
    }
}
