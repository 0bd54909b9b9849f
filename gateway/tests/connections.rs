//! What somebody without a credential can take from a gateway: connections, time, memory and look-ups.

use std::{
    io::ErrorKind,
    num::NonZeroU32,
    time::{Duration, Instant},
};

use everturn_gateway::{AuthConfig, GatewayConfig, config::ConnectionLimits};
use everturn_store::Access;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::{
    auth::key,
    support::{Answer, Sse, TestGateway, until},
};

async fn with_limits(connections: ConnectionLimits) -> TestGateway {
    TestGateway::with(GatewayConfig {
        connections,
        ..GatewayConfig::default()
    })
    .await
}

/// A connection that has sent this.
async fn sent(gateway: &TestGateway, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

/// What the gateway answers until it closes the connection.
async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8(bytes).unwrap()
}

fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let gateway = with_limits(ConnectionLimits {
        header_timeout: Duration::from_secs(1),
        ..ConnectionLimits::default()
    })
    .await;
    let mut slow = sent(
        &gateway,
        "GET /livez HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
    )
    .await;
    let mut silent = sent(&gateway, "").await;
    // Each byte comes in time; the whole head does not.
    let begun = Instant::now();
    while slow.write_all(b"a").await.is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it is still read"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(answer(&mut silent).await, "");
}

#[tokio::test]
async fn connections_that_ask_nothing_give_way_to_those_that_do() {
    let gateway = with_limits(ConnectionLimits {
        most: 4,
        ..ConnectionLimits::default()
    })
    .await;
    gateway.store.add("c", "default");
    let path = "/conversations/c/events/stream";
    let mut stream = Sse::of(gateway.request("GET", path).send().await.unwrap());
    let mut idle = Vec::new();
    for _ in 0..50 {
        idle.push(sent(&gateway, "GET /livez HTTP/1.1\r\nx-slow: ").await);
    }
    for _ in 0..10 {
        assert_eq!(gateway.get("/livez").await.status, 200);
    }
    until(async || idle.iter().filter(|stream| is_open(stream)).count() <= 3).await;
    // The reader has asked, so it is not among those who give way.
    gateway
        .store
        .append("c", "m", "user_message", r#"{"content": "hello"}"#);
    while stream.next().await.unwrap().event != "user_message" {}
}

/// Anonymous connections take every slot while a slow client reads a large answer.
#[tokio::test]
async fn a_large_answer_reaches_a_slow_client_while_idle_connections_fill_the_slots() {
    let gateway = with_limits(ConnectionLimits {
        most: 4,
        ..ConnectionLimits::default()
    })
    .await;
    let large = vec![b'a'; 8 * 1024 * 1024];
    let upload = gateway
        .request("POST", "/blobs")
        .header("content-type", "text/plain");
    let stored = Answer::of(upload.body(large.clone()).send().await.unwrap()).await;
    let id = stored.json()["blob_id"].as_str().unwrap().to_owned();

    // The kernel's buffers hold a part of the answer alone.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut slow = socket.connect(gateway.address).await.unwrap();
    let head = format!(
        "GET /api/v1/agent/blobs/{id} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    // The first byte shows that the gateway sends the answer.
    slow.readable().await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(sent(&gateway, "GET /livez HTTP/1.1\r\nx-slow: ").await);
    }
    until(async || idle.iter().filter(|stream| is_open(stream)).count() <= 3).await;
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert!(answer.ends_with(&large), "{} bytes", answer.len());
}

#[tokio::test]
async fn a_head_is_as_large_as_it_may_be() {
    let gateway = TestGateway::start().await;
    let ask = async |bytes: usize| {
        let head = format!(
            "GET /livez HTTP/1.1\r\nconnection: close\r\nx-large: {}\r\n\r\n",
            "a".repeat(bytes)
        );
        let mut stream = sent(&gateway, &head).await;
        answer(&mut stream).await
    };
    assert!(ask(20_000).await.starts_with("HTTP/1.1 200"));
    // It is looked at whenever more of it has come, so it may be a little larger than the limit.
    assert!(ask(100_000).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused() {
    let gateway = with_limits(ConnectionLimits {
        body_timeout: Duration::from_secs(1),
        body_bytes_per_second: 1000,
        ..ConnectionLimits::default()
    })
    .await;
    gateway.store.add("c", "default");
    for (path, kind) in [
        ("/api/v1/agent/conversations/c/messages", "application/json"),
        ("/api/v1/agent/blobs", "text/plain"),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: 100000\r\n\r\n{{"
        );
        let begun = Instant::now();
        let mut stream = sent(&gateway, &head).await;
        let answer = answer(&mut stream).await;
        assert!(
            answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"),
            "{path}: {answer}"
        );
        assert!(begun.elapsed() >= Duration::from_secs(1));
    }
    // What comes quickly may be large.
    let large = json!({"content": "a".repeat(100_000)});
    assert_eq!(
        gateway
            .post("/conversations/c/messages", &large)
            .await
            .status,
        202
    );
}

async fn secret(gateway: &TestGateway, tenant: &str) -> String {
    let secret = key(gateway, Access::tenant(tenant), "read write", None).await;
    secret.reveal()
}

fn few_refusals(key_cache: Duration) -> GatewayConfig {
    GatewayConfig {
        auth: AuthConfig {
            required: true,
            key_cache,
            ..AuthConfig::default()
        },
        connections: ConnectionLimits {
            refused_sign_ins_per_second: NonZeroU32::new(1),
            refused_sign_in_burst: NonZeroU32::new(5).unwrap(),
            trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
            ..ConnectionLimits::default()
        },
        ..GatewayConfig::default()
    }
}

#[tokio::test]
async fn an_address_that_tries_keys_has_to_wait_and_nobody_else() {
    // Keys that hold are read again at each request.
    let gateway = TestGateway::with(few_refusals(Duration::from_nanos(1))).await;
    let (known, other) = (
        secret(&gateway, "acme").await,
        secret(&gateway, "other").await,
    );
    let ask = async |key: &str, address: &str| {
        let request = gateway
            .request("GET", "/conversations")
            .header("x-forwarded-for", address);
        Answer::of(request.bearer_auth(key).send().await.unwrap()).await
    };
    assert_eq!(ask(&known, "192.0.2.1").await.status, 200);
    let bogus = |number: u32| format!("evk_{number:016x}_{}", "A".repeat(43));
    let mut tried = 0;
    let refused = loop {
        let answer = ask(&bogus(tried), "192.0.2.1").await;
        if answer.status != 401 {
            break answer;
        }
        tried += 1;
        assert!(tried < 1000, "nothing is refused");
    };
    refused.assert_problem(429, "rate_limited");
    assert!(tried >= 5 && !refused.header("retry-after").is_empty());
    // The key that this gateway knows goes on, also when it has to be read again.
    assert_eq!(ask(&known, "192.0.2.1").await.status, 200);
    assert_eq!(ask(&other, "192.0.2.2").await.status, 200);
}

/// Sends a credential from an address until the gateway refuses more than the credential. Returns the last answer, and the
/// number of the answers before.
async fn refused(
    gateway: &TestGateway,
    header: &str,
    credential: &str,
    address: &str,
) -> (Answer, u32) {
    for tried in 0..1000 {
        let request = gateway
            .request("GET", "/conversations")
            .header("x-forwarded-for", address)
            .header(header, credential);
        let answer = Answer::of(request.send().await.unwrap()).await;
        if answer.status != 401 {
            return (answer, tried);
        }
    }
    panic!("any number of refused credentials is checked");
}

#[tokio::test]
async fn every_refused_credential_counts_and_its_address_alone_waits() {
    let gateway = TestGateway::with(few_refusals(Duration::from_mins(5))).await;
    let key = secret(&gateway, "acme").await;
    let id = key.split('_').nth(1).unwrap();
    let wrong_secret = format!("Bearer evk_{id}_{}", "A".repeat(43));
    let unknown = format!("Bearer evk_{:016x}_{}", 7, "A".repeat(43));
    let session = format!("everturn=evs_{:016x}_{}", 7, "A".repeat(43));
    for (number, (header, credential)) in [
        ("authorization", wrong_secret.as_str()),
        // The gateway remembers the unknown key, and asks the store once.
        ("authorization", &unknown),
        ("authorization", "Bearer a.token.perhaps"),
        ("cookie", &session),
    ]
    .into_iter()
    .enumerate()
    {
        let address = format!("192.0.2.{number}");
        let (answer, tried) = refused(&gateway, header, credential, &address).await;
        answer.assert_problem(429, "rate_limited");
        assert!(tried >= 5, "{credential}: only {tried}");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=2).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn a_name_that_anybody_can_choose_reaches_nothing_without_a_credential() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let key = secret(&gateway, "default").await;
    let ask = |host: &str| {
        gateway
            .request("GET", "/conversations/c/events")
            .header("host", host)
    };
    let rebound = Answer::of(ask("evil.example:8080").send().await.unwrap()).await;
    rebound.assert_problem(403, "host_not_allowed");
    let known = Answer::of(ask("localhost:8080").send().await.unwrap()).await;
    assert_eq!(known.status, 200);
    let proven = ask("agents.example.com")
        .bearer_auth(&key)
        .send()
        .await
        .unwrap();
    assert_eq!(proven.status(), 200);
}
