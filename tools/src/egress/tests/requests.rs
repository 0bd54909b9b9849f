//! What the client does with names, redirects, secrets and answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::http::StatusCode;
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use tokio::net::TcpListener;

use super::{
    policy,
    server::{Names, Seen, server},
};
use crate::egress::{Egress, EgressError, EgressPolicy, Outgoing};

fn client(policy: EgressPolicy, names: Arc<Names>) -> Egress {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    Egress::with_resolver(policy, names).unwrap()
}

fn get(url: &str) -> Outgoing {
    Outgoing {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        signer: None,
        headers: HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer secret"))]),
        body: None,
        timeout: Duration::from_secs(30),
        max_response_bytes: 1000,
    }
}

#[tokio::test]
async fn a_name_is_refused_for_any_of_its_addresses() {
    let names = Names::of([
        ("internal.example", &["10.0.0.1"]),
        ("mixed.example", &["93.184.216.34", "10.0.0.1"]),
        ("metadata.example", &["fd00:ec2::254"]),
        ("mapped.example", &["::ffff:169.254.169.254"]),
        ("bücher.example", &[]),
        ("xn--bcher-kva.example", &["127.0.0.1"]),
    ]);
    let client = client(EgressPolicy::default(), names);
    for host in [
        "internal.example",
        "INTERNAL.example.",
        "mixed.example",
        "metadata.example",
        "mapped.example",
        "bücher.example",
    ] {
        let error = client
            .send(get(&format!("http://{host}/")))
            .await
            .unwrap_err();
        assert!(matches!(error, EgressError::Refused(_)), "{host}: {error}");
        assert!(
            !error.to_string().contains("10.0.0.1"),
            "what a name stands for is not told: {error}"
        );
    }
    let error = client
        .send(get("http://nowhere.example/"))
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn the_checked_address_is_the_one_connected_to() {
    let (port, _) = server().await;
    let names = Names::of([("service.example", &["127.0.0.1"])]);
    let client = client(policy(&["127.0.0.0/8"]), Arc::clone(&names));
    let answer = client
        .send(get(&format!("http://service.example:{port}/")))
        .await
        .unwrap();
    assert_eq!(
        (answer.status, &answer.body[..], answer.is_cut),
        (StatusCode::OK, &b"hello"[..], false)
    );
    assert_eq!(
        names.asked.load(Ordering::Relaxed),
        1,
        "a second look-up could lead elsewhere"
    );
}

#[tokio::test]
async fn a_host_is_allowed_by_name_on_its_port_only() {
    let (port, _) = server().await;
    let (other, _) = server().await;
    let client = client(
        policy(&[&format!("service.example:{port}")]),
        Names::of([("service.example", &["127.0.0.1"])]),
    );
    assert!(
        client
            .send(get(&format!("http://service.example:{port}/")))
            .await
            .is_ok()
    );
    let error = client
        .send(get(&format!("http://service.example:{other}/")))
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Refused(_)), "{error}");
}

#[tokio::test]
async fn every_redirect_is_checked() {
    let (port, seen) = server().await;
    let names = Names::of([("internal.example", &["10.0.0.1"])]);
    let client = client(policy(&[&format!("127.0.0.1:{port}")]), names);
    for target in [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://internal.example/",
        "//0x7f.1:1/",
        "file:///etc/passwd",
        "http://user:pass@127.0.0.1/",
    ] {
        let error = client
            .send(get(&format!("http://127.0.0.1:{port}/to?{target}")))
            .await
            .unwrap_err();
        assert!(
            matches!(error, EgressError::Refused(_)),
            "{target}: {error}"
        );
    }
    seen.lock().unwrap().clear();
    let error = client
        .send(get(&format!("http://127.0.0.1:{port}/loop")))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("more than 3 times"), "{error}");
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn secrets_stay_with_the_origin_they_are_for() {
    let (port, _) = server().await;
    let (other, seen) = server().await;
    let client = client(policy(&["127.0.0.1"]), Names::of([]));
    let elsewhere = format!("http://127.0.0.1:{port}/to?http://127.0.0.1:{other}/there");
    assert!(client.send(get(&elsewhere)).await.is_ok());
    assert!(
        client
            .send(get(&format!("http://127.0.0.1:{other}/to?/there")))
            .await
            .is_ok()
    );
    let authorized = |seen: &Seen| {
        let asked = seen.lock().unwrap();
        asked
            .iter()
            .map(|(what, _, headers)| format!("{what} {}", headers.contains_key("authorization")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        authorized(&seen),
        ["GET /there false", "GET /to true", "GET /there true"]
    );
    // A redirect back to the first origin does not get the headers again.
    seen.lock().unwrap().clear();
    let back = format!(
        "http://127.0.0.1:{other}/to?http://127.0.0.1:{port}/to?http://127.0.0.1:{other}/there"
    );
    assert!(client.send(get(&back)).await.is_ok());
    assert_eq!(authorized(&seen), ["GET /to true", "GET /there false"]);
}

#[tokio::test]
async fn arguments_are_repeated_on_the_same_origin_only() {
    let (port, seen) = server().await;
    let (other, _) = server().await;
    let client = client(policy(&["127.0.0.1"]), Names::of([]));
    let post = |path: String| Outgoing {
        method: Method::POST,
        body: Some("{}".into()),
        ..get(&format!("http://127.0.0.1:{port}{path}"))
    };
    client.send(post("/repeat?/there".into())).await.unwrap();
    client.send(post("/to?/there".into())).await.unwrap();
    let error = client
        .send(post(format!("/repeat?http://127.0.0.1:{other}/")))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("a POST does not follow"),
        "{error}"
    );
    let asked: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|(what, body, _)| format!("{what} {body}"))
        .collect();
    assert_eq!(
        asked,
        [
            "POST /repeat {}",
            "POST /there {}",
            "POST /to {}",
            "GET /there ",
            "POST /repeat {}"
        ]
    );
}

#[tokio::test]
async fn answers_are_bounded_in_size_and_time() {
    let (port, _) = server().await;
    let client = client(policy(&["127.0.0.1"]), Names::of([]));
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let answer = client.send(get(&url("/much"))).await.unwrap();
    assert_eq!((answer.body.len(), answer.is_cut), (1000, true));
    for path in ["/headers", "/cut"] {
        let error = client.send(get(&url(path))).await.unwrap_err();
        assert!(
            matches!(error, EgressError::NoAnswer { .. }),
            "{path}: {error}"
        );
    }
    let silence = Outgoing {
        timeout: Duration::from_millis(200),
        ..get(&url("/silence"))
    };
    let error = client.send(silence).await.unwrap_err();
    assert!(
        matches!(&error, EgressError::NoAnswer { reason, .. } if reason == "it took too long"),
        "{error}"
    );
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = client
        .send(get(&format!("http://127.0.0.1:{closed}/")))
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Unreachable { .. }), "{error}");
}
