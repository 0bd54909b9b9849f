//! Messages that wait when the run of a conversation is young have their turns in the same run. The engine would hold back
//! a new one for up to a second.
//!
//! Whether a run is still young when a turn ends depends on the machine. So each test repeats until one was.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use everturn_tests::{
    events::{contents, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};

/// A machine on which no turn of a run ends within a second has other troubles.
const TRIES: usize = 30;

/// Long enough for two more messages to come, and much shorter than a second.
const SPOKEN: Duration = Duration::from_millis(200);

/// Speaks for a while when the message begins with `speak`, and does not end its first answer to one that begins with
/// `hold`.
async fn model() -> Model {
    let held = Mutex::<HashSet<String>>::default();
    Model::start(move |request: &Request| {
        let asked = request.last("user");
        let answer = format!("Answer to {asked}.");
        if asked.starts_with("speak") {
            return Reply::spread(
                answer.split_inclusive(' ').map(str::to_owned).collect(),
                SPOKEN,
            );
        }
        let is_held = asked.starts_with("hold") && held.lock().unwrap().insert(asked);
        let reply = Reply::text(&answer);
        if is_held { reply.held() } else { reply }
    })
    .await
}

/// Sends these messages to a new conversation, while the first one is answered.
async fn ask_all<const N: usize>(stack: &Stack, contents: [&str; N]) -> String {
    let (conversation, _) = stack.ask(contents[0]).await;
    for content in &contents[1..] {
        let client = stack.client();
        client.submit(&conversation, content, None).await.unwrap();
    }
    conversation
}

#[tokio::test]
async fn the_turns_of_messages_that_wait_follow_in_one_run() {
    let stack = Stack::new(model().await).await;
    let _running = stack.start().await;
    for _ in 0..TRIES {
        let conversation = ask_all(&stack, ["speak", "two", "three"]).await;
        let events = stack.ended(&conversation, 3).await;
        let expected = ["Answer to speak.", "Answer to two.", "Answer to three."];
        assert_eq!(contents(&events, "assistant_message"), expected);
        stack.workflow_status(&conversation, "COMPLETED").await;
        if stack.has_one_run(&conversation).await {
            return;
        }
    }
    panic!("no run had three turns");
}

#[tokio::test]
async fn a_cancel_ends_the_second_turn_of_a_run_alone() {
    let stack = Stack::new(model().await).await;
    let _running = stack.start().await;
    for number in 0..TRIES {
        let held = format!("hold {number}");
        let conversation = ask_all(&stack, ["speak", &held, "three"]).await;
        stack.asked(3 * number + 2).await;
        let had_one = stack.has_one_run(&conversation).await;
        stack.client().cancel(&conversation).await.unwrap();
        let events = stack.ended(&conversation, 3).await;
        let types = types(&events);
        let is_end = |name: &&str| matches!(*name, "complete" | "cancelled");
        let ends: Vec<_> = types.split(' ').filter(is_end).collect();
        assert_eq!(ends, ["complete", "cancelled", "complete"]);
        if had_one {
            return;
        }
    }
    panic!("no run had two turns");
}

#[tokio::test]
async fn another_worker_goes_on_with_the_second_turn_of_a_run() {
    let stack = Stack::new(model().await).await;
    let _gateway = stack.gateway().await;
    let mut worker = stack.worker();
    for number in 0..TRIES {
        let held = format!("hold {number}");
        let conversation = ask_all(&stack, ["speak", &held]).await;
        stack.asked(3 * number + 2).await;
        let had_one = stack.has_one_run(&conversation).await;
        worker.kill().await;
        worker = stack.worker();
        let events = stack.ended(&conversation, 2).await;
        let expected = ["Answer to speak.", &format!("Answer to {held}.")];
        assert_eq!(contents(&events, "assistant_message"), expected);
        let steps = data(&events, "complete").into_iter();
        assert_eq!(steps.map(|end| &end["steps"]).collect::<Vec<_>>(), [1, 1]);
        if had_one {
            return;
        }
    }
    panic!("no run had two turns");
}
