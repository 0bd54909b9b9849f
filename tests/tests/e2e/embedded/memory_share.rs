//! Memory is a tenant's share: one that reads nothing of very much holds no more of the gateway than it may, and the next
//! one notices nothing.

use std::time::Duration;

use everturn_client::{Frame, GatewayClient};
use everturn_store::Store;
use everturn_tests::{
    append::Appender,
    crowd::allow_streams,
    hostile::Target,
    model::{Model, Reply, Request},
    stack::{Stack, frames_until},
    wait,
};
use futures::{StreamExt, stream};
use reqwest::StatusCode;
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::embedded::keys::{AUTH, create};

const MIB: usize = 1024 * 1024;
/// What the gateway may hold for all tenants and for one, in MiB.
const ALL: usize = 96;
const OF_TENANT: usize = 64;
/// What the process may take more than that while it is attacked: connections, and what the allocator keeps.
const BESIDE: usize = 160;

const EVENT: usize = 256 * 1024;
/// Events of the conversation that is read: a page of the largest size.
const EVENTS: usize = 16;
const REPLAYS: usize = 800;
/// Conversations that are followed while events come, and their events: more than one reader's queue takes.
const FOLLOWED: usize = 40;
const FOLLOWED_EVENTS: usize = 6;
const PAGES: usize = 150;
const BODIES: usize = 150;
/// When a request counts as one that the gateway takes no more of.
const STALLED: Duration = Duration::from_millis(500);
/// Requests that are sent at the same time.
const AT_ONCE: usize = 32;

/// A tenant that attacks.
struct Attacker<'a> {
    stack: &'a Stack,
    store: Store,
    target: Target,
}

impl Attacker<'_> {
    async fn conversation(&self, id: &str) -> Appender {
        Appender::begin_for(&self.store, "loud", id).await
    }

    /// Sends requests, and reads nothing of any answer.
    async fn send(&self, requests: impl Iterator<Item = String>) -> Vec<TcpStream> {
        let sent = requests.map(|request| async move {
            let mut connection = self.target.connect().await.unwrap();
            // The gateway may take no more of it now.
            let _stalled = timeout(STALLED, connection.write_all(request.as_bytes())).await;
            connection
        });
        stream::iter(sent).buffered(AT_ONCE).collect().await
    }

    fn get(&self, path: &str) -> String {
        format!("{}\r\n", self.target.head("GET", path))
    }

    /// A message of the largest size, every byte escaped, in the deepest JSON, without its end.
    fn body(&self) -> String {
        let head = self.target.head("POST", "read/messages");
        let content = "\\u0041".repeat(EVENT);
        let deep = "[".repeat(8 * 1024);
        let length = content.len() + 2 * deep.len();
        format!(
            "{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{{\"content\":\"{content}\",\"x\":{deep}"
        )
    }

    /// Has the gateway hold as much as it can be brought to, while the other tenant has its turns. Returns the connections,
    /// which take nothing.
    async fn attack(&self, quiet: &GatewayClient) -> Vec<TcpStream> {
        let event = "x".repeat(EVENT);
        let read = self.conversation("read").await;
        for _ in 0..EVENTS {
            read.append(&event).await;
        }
        let mut followed = Vec::new();
        for number in 0..FOLLOWED {
            followed.push(self.conversation(&format!("followed-{number}")).await);
        }
        let follow = |number| self.get(&format!("followed-{number}/events/stream"));
        let mut connections = self.send((0..FOLLOWED).map(follow)).await;
        turn(quiet).await;
        let replay = |_| self.get("read/events/stream");
        connections.extend(self.send((0..REPLAYS).map(replay)).await);
        turn(quiet).await;
        let page = |_| self.get("read/events");
        connections.extend(self.send((0..PAGES).map(page)).await);
        turn(quiet).await;
        connections.extend(self.send((0..BODIES).map(|_| self.body())).await);
        for appender in &followed {
            for _ in 0..FOLLOWED_EVENTS {
                appender.append(&event).await;
            }
        }
        turn(quiet).await;
        connections
    }

    /// The answer to a page, for a client that takes it.
    async fn page(&self) -> (StatusCode, String) {
        let url = self.stack.gateway_url(0);
        let url = format!("{url}/api/v1/agent/conversations/read/events");
        let answer = self
            .stack
            .http
            .get(url)
            .bearer_auth(&self.target.key)
            .send()
            .await;
        let answer = answer.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }
}

/// A turn of a tenant, none of whose requests is refused.
async fn turn(client: &GatewayClient) {
    let conversation = client.create_conversation(None).await.unwrap();
    client.submit(&conversation, "hello", None).await.unwrap();
    let is_end = |frame: &Frame| frame.event == "assistant_message";
    frames_until(client, &conversation, 0, is_end).await;
}

#[tokio::test]
async fn slow_readers_of_one_tenant_hold_no_more_than_its_share() {
    allow_streams(REPLAYS + FOLLOWED + PAGES + BODIES);
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi there.")).await)
        .await
        .with_gateways(1);
    let (all, of_tenant) = (ALL * MIB, OF_TENANT * MIB);
    stack.configure_gateway("stall_timeout = \"10m\"\nbody_timeout = \"10m\"\n");
    stack.configure(&format!(
        "{AUTH}\n[limits]\nmemory_bytes = {all}\ntenant_memory_bytes = {of_tenant}\n\
         [reconciler]\ngrace = \"1h\"\n"
    ));
    let (_worker, gateway) = stack.start().await;
    let key = create(&stack, &["--tenant", "quiet"]).await;
    let quiet = GatewayClient::with_token(&stack.gateway_url(0), Some(&key)).unwrap();
    let attacker = Attacker {
        stack: &stack,
        store: stack.store().await,
        target: Target {
            address: ([127, 0, 0, 1], stack.gateway_port(0)).into(),
            key: create(&stack, &["--tenant", "loud"]).await,
            conversation: "read".to_owned(),
        },
    };
    turn(&quiet).await;
    let before = gateway.peak_memory_bytes();

    let connections = attacker.attack(&quiet).await;
    let peak = gateway.peak_memory_bytes();
    let grown = usize::try_from(peak.saturating_sub(before)).unwrap() / MIB;
    println!("the gateway has grown by {grown} MiB");
    assert!(grown < ALL + BESIDE, "by {grown} MiB");
    wait::until("the attacker's page is refused", || async {
        let (status, text) = attacker.page().await;
        (status == StatusCode::TOO_MANY_REQUESTS && text.contains("too_much_at_once")).then_some(())
    })
    .await;
    turn(&quiet).await;

    // Nothing is lost: when there is memory again, the attacker's own readers get everything.
    drop(connections);
    wait::until("the attacker's page is answered", || async {
        (attacker.page().await.0 == StatusCode::OK).then_some(())
    })
    .await;
    let loud =
        GatewayClient::with_token(&stack.gateway_url(0), Some(&attacker.target.key)).unwrap();
    let last = u32::try_from(FOLLOWED_EVENTS).unwrap() + 1;
    let is_last = |frame: &Frame| frame.id == Some(last);
    frames_until(&loud, "followed-0", 0, is_last).await;
}
