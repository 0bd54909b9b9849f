//! Alerts on gateways.

use std::{net::SocketAddr, time::Duration};

use everturn_tests::{
    arena::Arena,
    crowd::{Crowd, open_and_stop},
    model::{Model, Reply, Request},
    stack::Stack,
};
use futures::future::join_all;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::watched::Watched;

/// The most streams of the gateway.
const MAX_STREAMS: usize = 40;

/// The most connections of the gateway.
const MAX_CONNECTIONS: usize = 40;

/// The memory that a tenant may hold, in bytes: the least that can be configured.
const TENANT_MEMORY_BYTES: usize = 16 * 1024 * 1024;

/// A request whose body does not end. The gateway holds 3 MB for it, three times what it announces.
const UNENDED: &str = "POST /api/v1/agent/conversations HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/json\r\ncontent-length: 1000000\r\n\r\n{";

/// Number of such requests that a tenant has memory for.
const UNENDED_THAT_FIT: usize = 5;

/// The long speech is as long as a text may be, nearly: with its event, more than the kernel keeps for a reader.
fn scripted(request: &Request) -> Reply {
    match request.last("user").as_str() {
        "a long speech" => {
            Reply::pieces(vec!["x".repeat(32 * 1024); 30], Duration::from_millis(20))
        }
        _ => Reply::text("Hello."),
    }
}

/// A system whose gateway has these keys under `[gateway]`, and these tables.
async fn configured(keys: &str, tables: &str) -> Watched {
    let model = Model::start(scripted).await;
    let stack = Stack::new(model).await;
    stack.configure_gateway(keys);
    stack.configure(tables);
    Watched::start(stack, 1).await
}

async fn with_few_streams() -> Watched {
    let keys = format!("max_streams = {MAX_STREAMS}\nstall_timeout = \"1s\"\n");
    let mut watched = configured(&keys, "").await;
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

/// Opens connections that say this and nothing more, and waits until the series with these words count so many in all.
async fn connect(watched: &Watched, count: usize, said: &str, words: &[&str], all: f64) {
    let address = address(watched);
    let opened = (0..count).map(|_| async move {
        let mut connection = TcpStream::connect(address).await.unwrap();
        // The gateway may have closed it by now.
        let _closed = connection.write_all(said.as_bytes()).await;
        connection
    });
    let _open = join_all(opened).await;
    watched.counted(words, all).await;
}

#[tokio::test]
async fn connections_are_refused() {
    let keys = format!("max_connections = {MAX_CONNECTIONS}\n");
    let mut watched = configured(&keys, "").await;
    let refused = ["everturn_connections_refused_total", "reason=\"idle\""];
    connect(&watched, MAX_CONNECTIONS + 1, "", &refused, 1.0).await;
    watched.is_well().await;
    connect(&watched, MAX_CONNECTIONS + 150, "", &refused, 151.0).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnConnectionsRefused"]).await;
    fires[0].has("reason", "idle");
}

#[tokio::test]
async fn a_tenant_holds_more_than_its_share_of_memory() {
    let tables = format!("[limits]\ntenant_memory_bytes = {TENANT_MEMORY_BYTES}\n");
    let mut watched = configured("body_timeout = \"10m\"\n", &tables).await;
    let refused = ["everturn_over_memory_total", "what=\"request\""];
    connect(&watched, UNENDED_THAT_FIT + 1, UNENDED, &refused, 1.0).await;
    watched
        .shows("gateway-1", "everturn_memory_held_bytes 0")
        .await;
    watched.is_well().await;
    connect(&watched, UNENDED_THAT_FIT + 25, UNENDED, &refused, 26.0).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnTenantOverMemory"]).await;
    fires[0].has("what", "request");
}
