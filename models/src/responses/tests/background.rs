//! Responses that run in the background (invariant 5, paid once).

use super::*;

fn running() -> Script {
    Script::status(200, response("in_progress", &[]))
}

fn ended(status: &str, text: &str) -> Script {
    Script::status(200, response(status, &[message(text)]))
}

fn paths(asked: &Asked) -> Vec<&str> {
    asked.seen.iter().map(|(path, _)| path.as_str()).collect()
}

#[tokio::test]
async fn the_id_is_heard_before_any_text() {
    let events = [created(), delta("Hi"), completed(&[message("Hi")])];
    let asked = ask(true, [Script::named(numbered(0, events))]).await;
    assert_eq!(asked.reply.unwrap().text, "Hi");
    assert_eq!(asked.heard, [accepted(), said("Hi")]);
}

#[tokio::test]
async fn a_response_that_cannot_be_noted_is_not_read() {
    let events = [created(), delta("Hi"), completed(&[message("Hi")])];
    let server = Server::start([Script::named(events)]).await;
    let mut recorder = Recorder {
        refuses: true,
        ..Recorder::default()
    };
    let client = client(server.base_url(), true);
    let reply = client.complete(hello(), &mut recorder).await;
    assert_eq!(reply.unwrap_err().message, "not noted");
    assert_eq!(recorder.heard, [accepted()]);
}

#[tokio::test]
async fn a_cut_stream_goes_on_where_it_was_cut() {
    let first = Script::named(numbered(0, [created(), delta("one "), delta("two ")]));
    let rest = |from, text: &str| numbered(from, [delta(text)]);
    let last = numbered(
        4,
        [delta("four"), completed(&[message("one two three four")])],
    );
    let asked = ask(
        true,
        [
            first,
            running(),
            // This server sends an event once more.
            Script::named(numbered(2, [delta("two "), delta("three ")])),
            running(),
            Script::named(last),
        ],
    )
    .await;
    assert_eq!(rest(3, "x")[0]["sequence_number"], 3);
    assert_eq!(asked.reply.as_ref().unwrap().text, "one two three four");
    let texts = ["one ", "two ", "three ", "four"].map(said);
    assert_eq!(asked.heard, [&[accepted()][..], &texts].concat());
    assert_eq!(
        paths(&asked),
        [
            "/v1/responses",
            "/v1/responses/resp_1",
            "/v1/responses/resp_1?stream=true&starting_after=2",
            "/v1/responses/resp_1",
            "/v1/responses/resp_1?stream=true&starting_after=3",
        ]
    );
}

#[tokio::test]
async fn a_silent_stream_is_left_for_another() {
    let silent = Script::named(numbered(0, [created(), delta("one ")]));
    let server = Server::start([
        silent.then_pause(Duration::from_mins(10)),
        ended("completed", "one two"),
    ])
    .await;
    let mut recorder = Recorder::default();
    let client = client(server.base_url(), true);
    let reply = client.complete(hasty(), &mut recorder).await.unwrap();
    assert_eq!(reply.text, "one two");
    assert_eq!(recorder.heard, [accepted(), said("one "), said("two")]);
}

#[tokio::test]
async fn a_provider_that_says_nothing_more_has_timed_out() {
    let silent = || {
        let begun = Script::named(numbered(0, [created(), delta("one ")]));
        begun.then_pause(Duration::from_mins(10))
    };
    let mute = Script::named([]).then_pause(Duration::from_mins(10));
    for (is_background, scripts) in [(false, vec![silent()]), (true, vec![mute])] {
        let server = Server::start(scripts).await;
        let mut recorder = Recorder::default();
        let client = client(server.base_url(), is_background);
        let error = client.complete(hasty(), &mut recorder).await.unwrap_err();
        assert_eq!(error.code, FailureCode::LlmTimeout, "{is_background}");
    }
}

/// A request whose provider may be silent for a short time only.
fn hasty() -> ModelRequest {
    ModelRequest {
        silence: Some(Duration::from_millis(200)),
        ..hello()
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_not_the_end_of_the_response() {
    let error = json!({"type": "error", "code": "server_error", "message": "the stream broke"});
    let asked = ask(
        true,
        [
            Script::named([created(), error]),
            ended("completed", "whole"),
        ],
    )
    .await;
    assert_eq!(asked.reply.unwrap().text, "whole");
}

#[tokio::test]
async fn a_response_that_cannot_be_streamed_again_is_waited_for() {
    let refused = Script::status(400, json!({"error": {"message": "too late to stream"}}));
    let asked = ask(
        true,
        [
            Script::named([created()]),
            running(),
            refused,
            running(),
            Script::status(503, "busy"),
            ended("completed", "whole"),
        ],
    )
    .await;
    assert_eq!(asked.reply.unwrap().text, "whole");
    assert_eq!(asked.heard, [accepted(), said("whole")]);
}

#[tokio::test]
async fn a_later_attempt_goes_on_with_the_response_and_asks_for_none() {
    let events = [created(), delta("one "), completed(&[message("one two")])];
    let streams = [running(), Script::named(numbered(0, events))];
    let asked = ask_for(true, attached("resp_1"), streams).await;
    assert_eq!(asked.reply.as_ref().unwrap().text, "one two");
    assert_eq!(
        asked.heard,
        [said("one "), said("two")],
        "it is noted already"
    );
    let streamed = "/v1/responses/resp_1?stream=true";
    assert_eq!(paths(&asked), ["/v1/responses/resp_1", streamed]);

    let asked = ask_for(true, attached("resp_1"), [ended("completed", "whole")]).await;
    assert_eq!(asked.reply.as_ref().unwrap().text, "whole");
    assert_eq!(asked.heard, [said("whole")]);
    let elsewhere = ask_for(true, attached("../x?y"), [ended("completed", "whole")]).await;
    assert_eq!(paths(&elsewhere), ["/v1/responses/..%2Fx%3Fy"]);
}

#[tokio::test]
async fn a_response_that_came_to_nothing_is_made_again() {
    let failed = json!({"id": "resp_0", "status": "failed", "error": {"code": "server_error", "message": "no"}});
    for lost in [
        Script::status(404, "{}"),
        Script::status(200, failed),
        ended("cancelled", ""),
        Script::status(200, response("completed", &[])),
    ] {
        let again = Script::named([created(), completed(&[message("Hi")])]);
        let server = Server::start([lost, again]).await;
        let client = client(server.base_url(), true);
        let mut recorder = Recorder::default();
        let reply = client.complete(attached("resp_0"), &mut recorder).await;
        assert_eq!(reply.unwrap().text, "Hi");
        assert_eq!(recorder.heard, [Heard::MadeAgain, accepted(), said("Hi")]);
        let key = server.seen()[1].headers["idempotency-key"].clone();
        assert_eq!(key, "call-1-after-resp_0", "it is not the call that failed");
    }
}

#[tokio::test]
async fn a_response_that_may_not_be_made_again_now_is_not_asked_for() {
    let server = Server::start([Script::status(404, "{}")]).await;
    let client = client(server.base_url(), true);
    let mut recorder = Recorder {
        refuses: true,
        ..Recorder::default()
    };
    let reply = client.complete(attached("resp_0"), &mut recorder).await;
    assert_eq!(reply.unwrap_err().code, FailureCode::LlmRateLimited);
    assert_eq!(recorder.heard, [Heard::MadeAgain]);
    assert_eq!(server.seen().len(), 1, "only the state was read");
}

#[tokio::test]
async fn each_attempt_names_the_call_the_same() {
    for _ in 0..2 {
        let server = Server::start([Script::named([completed(&[message("Hi")])])]).await;
        let mut nobody = |_: Part, _: &str| {};
        let client = client(server.base_url(), true);
        client.complete(hello(), &mut nobody).await.unwrap();
        assert_eq!(server.seen()[0].headers["idempotency-key"], "call-1");
    }
}

#[tokio::test]
async fn a_cancel_of_what_is_over_is_no_error() {
    for (status, is_ok) in [(200, true), (404, true), (400, true), (500, false)] {
        let server = Server::start([Script::status(status, json!({"error": KEY}))]).await;
        let client = client(server.base_url(), true);
        let cancelled = client.cancel("p", "resp_1").await;
        assert_eq!(cancelled.is_ok(), is_ok, "{status}");
        assert!(
            cancelled
                .err()
                .is_none_or(|error| !error.message.contains(KEY))
        );
        assert_eq!(server.seen()[0].path, "/v1/responses/resp_1/cancel");
    }
}
