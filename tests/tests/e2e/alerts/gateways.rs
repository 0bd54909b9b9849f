//! Alerts on gateways.

use std::{net::SocketAddr, time::Duration};

use everturn_tests::{
    arena::Arena,
    crowd::{Crowd, open_and_stop},
    model::{Model, Reply, Request},
    stack::Stack,
};
use futures::future::join_all;

use super::watched::Watched;

/// The most streams of the gateway.
const MAX_STREAMS: usize = 40;

/// The long speech is as long as a text may be, nearly: with its event, more than the kernel keeps for a reader.
fn scripted(request: &Request) -> Reply {
    match request.last("user").as_str() {
        "a long speech" => {
            Reply::pieces(vec!["x".repeat(32 * 1024); 30], Duration::from_millis(20))
        }
        _ => Reply::text("Hello."),
    }
}

async fn with_few_streams() -> Watched {
    let model = Model::start(scripted).await;
    let stack = Stack::new(model).await;
    stack.configure_gateway(&format!(
        "max_streams = {MAX_STREAMS}\nstall_timeout = \"1s\"\n"
    ));
    let mut watched = Watched::start(stack, 1).await;
    watched.max_streams = MAX_STREAMS;
    watched
}

fn address(watched: &Watched) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], watched.stack.gateway_port(0)))
}

#[tokio::test]
async fn streams_are_near_their_limit() {
    let mut watched = with_few_streams().await;
    let conversation = watched
        .stack
        .client()
        .create_conversation(None)
        .await
        .unwrap();
    let path = Arena::path(&conversation);
    let most = MAX_STREAMS * 4 / 5;
    let _allowed = Crowd::open(address(&watched), most, |_| path.clone()).await;
    watched.is_well().await;
    watched.minutes(12).await;
    watched.only_fires(&[]).await;
    let _one_more = Crowd::open(address(&watched), 1, |_| path.clone()).await;
    watched.minutes(12).await;
    let fires = watched.only_fires(&["EverturnStreamsNearLimit"]).await;
    fires[0].has("pod", "gateway-1");
}

/// Has readers that take nothing of a long speech, and waits until the gateway has cut them, and so many in all.
async fn cut(watched: &Watched, readers: usize, all: f64) {
    let client = watched.stack.client();
    let conversation = client.create_conversation(None).await.unwrap();
    let path = Arena::path(&conversation);
    let stuck = (0..readers).map(|_| open_and_stop(address(watched), &path));
    let _stuck = join_all(stuck).await;
    client
        .submit(&conversation, "a long speech", None)
        .await
        .unwrap();
    watched
        .counted(&["everturn_streams_cut_total", "stalled"], all)
        .await;
}

#[tokio::test]
async fn readers_are_cut() {
    let mut watched = with_few_streams().await;
    cut(&watched, 1, 1.0).await;
    watched.is_well().await;
    cut(&watched, 25, 26.0).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnReadersCut"]).await;
    fires[0].has("reason", "stalled");
}

#[tokio::test]
async fn requests_are_answered_with_errors() {
    let mut watched = with_few_streams().await;
    let (conversation, _) = watched.stack.ask("hello").await;
    watched.stack.ended(&conversation, 1).await;
    watched.stack.refuse_removal(&conversation).await;
    let path = format!("/api/v1/agent/conversations/{conversation}");
    let (http, url) = (watched.stack.http.clone(), watched.stack.url() + &path);
    let refused = async || {
        let answer = http.delete(&url).send().await.unwrap();
        assert_eq!(answer.status(), 500);
    };
    refused().await;
    watched.is_well().await;
    for _ in 0..9 {
        join_all((0..6).map(|_| refused())).await;
        watched.busy_minutes(1).await;
    }
    watched.only_fires(&["EverturnGatewayErrors"]).await;
}
