//! A silent stream stays open as if for an hour, with all limits of idleness at a three-hundredth of their defaults.

use std::time::{Duration, Instant};

use everturn_gateway::GatewayConfig;
use futures::{Stream, StreamExt};

use crate::support::TestGateway;

/// The number by which every default of a limit is divided.
const SCALE: u32 = 300;

const HOUR: Duration = Duration::from_hours(1);

/// Longer than every limit of the test.
const SILENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_silent_stream_stays_open_for_an_hour_and_then_goes_on() {
    let default = GatewayConfig::default();
    let comments = usize::try_from(HOUR.as_millis() / default.heartbeat.as_millis()).unwrap();
    let gateway = TestGateway::with(GatewayConfig {
        heartbeat: default.heartbeat / SCALE,
        stall_timeout: default.stall_timeout / SCALE,
        poll_interval: default.poll_interval / SCALE,
        ..default
    })
    .await;
    gateway.store.add("c", "default");
    gateway.store.append(
        "c",
        "m",
        "user_message",
        r#"{"content":"hi","message_id":"m"}"#,
    );
    let response = gateway
        .request("GET", "/conversations/c/events/stream")
        .send()
        .await
        .unwrap();
    let mut bytes = response.bytes_stream().map(Result::unwrap);
    let begun = Instant::now();
    let hour = read_until(&mut bytes, |text| lines(text, ":") >= comments).await;
    // Not more often than told either: what wakes a phone costs its battery.
    assert!(
        begun.elapsed() >= HOUR / SCALE * 9 / 10,
        "{comments} comments came within {:?}",
        begun.elapsed()
    );
    assert_eq!(lines(&hour, "id:"), 1, "{hour}");

    gateway
        .store
        .append("c", "m", "assistant_message", r#"{"content":"still here"}"#);
    let next = read_until(&mut bytes, |text| {
        lines(text, "id:") > 0 && text.ends_with("\n\n")
    })
    .await;
    assert!(
        next.contains("id: 2-19b7ca98f2f\nevent: assistant_message\n"),
        "{next}"
    );
}

/// Reads the stream until it has sent enough. Asserts that it does not end, and is never silent for long.
async fn read_until<B: AsRef<[u8]>>(
    mut bytes: impl Stream<Item = B> + Unpin,
    is_enough: impl Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    while !is_enough(&text) {
        let chunk = tokio::time::timeout(SILENCE, bytes.next())
            .await
            .expect("the stream is silent");
        let chunk = chunk.unwrap_or_else(|| panic!("the stream has ended after {text}"));
        text.push_str(std::str::from_utf8(chunk.as_ref()).unwrap());
    }
    text
}

fn lines(text: &str, beginning: &str) -> usize {
    text.lines()
        .filter(|line| line.starts_with(beginning))
        .count()
}
