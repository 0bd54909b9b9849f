//! What the policy refuses, and that the client obeys it against a real server.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap as Headers, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing,
};
use futures::stream;
use proptest::prelude::*;
use reqwest::{
    Method,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use tokio::net::TcpListener;

use super::*;

fn policy(allowed: &[&str]) -> EgressPolicy {
    let mut policy = EgressPolicy::default();
    for entry in allowed {
        policy.allow(entry).unwrap();
    }
    policy
}

fn check(policy: &EgressPolicy, url: &str) -> Result<(), Refused> {
    policy.check_url(&Url::parse(url).unwrap()).map(drop)
}

/// Addresses that nothing may connect to, in many spellings.
const REFUSED: [&str; 61] = [
    "127.0.0.1",
    "127.255.255.254",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.1",
    "127.0.0.1.",
    "１２７.０.０.１",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:0:10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[100::1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[2002:0a00:0001::1]",
    "[2002:7f00:1::]",
    "[3fff::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
];

const PUBLIC: [&str; 14] = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "[2606:4700::1111]",
    "[2a00:1450:4001::1]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
];

#[test]
fn only_public_addresses_are_reached() {
    let policy = EgressPolicy::default();
    for host in REFUSED {
        assert!(
            check(&policy, &format!("http://{host}/")).is_err(),
            "{host} must be refused"
        );
        assert!(
            check(&policy, &format!("https://{host}:8443/x?y")).is_err(),
            "{host} must be refused"
        );
    }
    for host in PUBLIC {
        assert_eq!(check(&policy, &format!("http://{host}/")), Ok(()), "{host}");
    }
}

#[test]
fn schemes_and_users_are_refused() {
    let policy = policy(&["localhost"]);
    for url in [
        "ftp://localhost/",
        "file:///etc/passwd",
        "gopher://localhost/",
        "data:text/plain,x",
        "unix:/run/x",
    ] {
        assert!(check(&policy, url).is_err(), "{url}");
    }
    for url in [
        "http://user@localhost/",
        "http://user:pass@localhost/",
        "http://:pass@localhost/",
    ] {
        assert!(
            check(&policy, url)
                .unwrap_err()
                .to_string()
                .contains("user or a password"),
            "{url}"
        );
    }
}

#[test]
fn the_operator_allows_networks_addresses_and_hosts() {
    let policy = policy(&[
        "10.1.0.0/16",
        "192.168.0.7",
        "fd00:1::/32",
        "[::1]:9000",
        "LocalHost:8080",
        "intern.example",
        "127.0.0.1:81",
    ]);
    for allowed in [
        "http://10.1.2.3/",
        "http://[::ffff:10.1.2.3]/",
        "http://[64:ff9b::10.1.2.3]/",
        "http://192.168.0.7:5000/",
        "http://[fd00:1::5]/",
        "http://[::1]:9000/",
        "http://127.0.0.1:81/",
        "http://127.1:81/",
    ] {
        assert_eq!(check(&policy, allowed), Ok(()), "{allowed}");
    }
    for refused in [
        "http://10.2.0.1/",
        "http://192.168.0.8/",
        "http://[::1]:9001/",
        "http://127.0.0.1/",
        "http://[fd00:2::]/",
    ] {
        assert!(check(&policy, refused).is_err(), "{refused}");
    }
    let route = |url: &str| policy.check_url(&Url::parse(url).unwrap()).unwrap();
    for named in [
        "http://localhost:8080/",
        "http://localhost.:8080/",
        "https://INTERN.example/",
        "http://intern.example:1/",
    ] {
        assert_eq!(route(named), Route::Allowed, "{named}");
    }
    for other in [
        "http://localhost/",
        "http://localhost:80/",
        "http://x.intern.example/",
        "http://intern.example.org/",
    ] {
        assert_eq!(route(other), Route::Checked, "{other}");
    }
}

#[test]
fn what_cannot_be_allowed_is_explained() {
    for (entry, expected) in [
        ("10.1.2.3/16", "write 10.1.0.0/16 or 10.1.2.3"),
        ("fd00:1::/8", "write fd00::/8 or fd00:1::"),
        ("10.0.0.0/33", "10.1.0.0/16"),
        ("http://localhost/", "10.1.0.0/16"),
        ("localhost:http", "port"),
        ("a b", "localhost:8080"),
        ("", "localhost:8080"),
    ] {
        let error = EgressPolicy::default().allow(entry).unwrap_err();
        assert!(error.contains(expected), "{entry}: {error}");
    }
    for all in ["0.0.0.0/0", "::/0"] {
        assert_eq!(EgressPolicy::default().allow(all), Ok(()), "{all}");
    }
}

proptest! {
    #[test]
    fn every_form_of_an_address_has_the_same_fate(bits in any::<u32>()) {
        let policy = EgressPolicy::default();
        let address = std::net::Ipv4Addr::from_bits(bits);
        let is_public = check(&policy, &format!("http://{address}/")).is_ok();
        let [a, b, c, d] = address.octets();
        for same in [
            format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}"), format!("{a:#x}.{b:#o}.{}", u32::from(c) * 256 + u32::from(d)).replace("0o", "0"),
            format!("{address}."), format!("[::ffff:{address}]"), format!("[64:ff9b::{address}]"),
        ] {
            prop_assert_eq!(check(&policy, &format!("http://{same}/")).is_ok(), is_public, "{} {}", address, same);
        }
        for embedded in [format!("[::{address}]"), format!("[2002:{:x}:{:x}::1]", bits >> 16, bits & 0xffff)] {
            let is_refused = check(&policy, &format!("http://{embedded}/")).is_err();
            prop_assert!(is_refused, "{}", embedded);
        }
    }

    #[test]
    fn no_text_makes_the_check_panic(text in "\\PC{0,40}", prefix in "(http://)?[0-9a-fx.:\\[\\]%@]{0,20}") {
        let _ = EgressPolicy::default().allow(&text);
        let _ = EgressPolicy::default().allow(&prefix);
        for url in [text, prefix].iter().filter_map(|url| Url::parse(url).ok()) {
            if let (Ok(()), Some(Host::Ipv4(address))) = (check(&EgressPolicy::default(), url.as_str()), url.host()) {
                prop_assert!(addresses::is_public(address.into()));
            }
        }
    }
}

/// A resolver with names of its own, and how often it was asked.
#[derive(Default)]
struct Names {
    names: BTreeMap<&'static str, Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    fn of<const N: usize>(names: [(&'static str, &[&str]); N]) -> Arc<Self> {
        let names = names.map(|(name, addresses)| {
            (
                name,
                addresses.iter().map(|text| text.parse().unwrap()).collect(),
            )
        });
        Arc::new(Self {
            names: names.into(),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self
            .names
            .get(name.as_str().trim_end_matches('.'))
            .cloned()
            .unwrap_or_default();
        let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
        Box::pin(async move { Ok(Box::new(addresses) as Addrs) })
    }
}

type Seen = Arc<Mutex<Vec<(String, String, Headers)>>>;

/// A server on 127.0.0.1 that redirects, talks much, or answers nothing; and what it was asked.
async fn server() -> (u16, Seen) {
    let seen = Seen::default();
    let record = Arc::clone(&seen);
    let answer = move |method: axum::http::Method, uri: Uri, headers: Headers, body: Bytes| {
        record.lock().unwrap().push((
            format!("{method} {}", uri.path()),
            String::from_utf8_lossy(&body).into(),
            headers,
        ));
        let query = uri.query().unwrap_or_default().to_owned();
        async move { respond(uri.path(), &query).await }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        axum::serve(listener, Router::new().fallback(routing::any(answer))).await
    });
    (port, seen)
}

async fn respond(path: &str, query: &str) -> Response {
    match path {
        "/to" => (StatusCode::FOUND, [("location", query.to_owned())]).into_response(),
        "/repeat" => (
            StatusCode::TEMPORARY_REDIRECT,
            [("location", query.to_owned())],
        )
            .into_response(),
        "/loop" => (StatusCode::FOUND, [("location", "/loop")]).into_response(),
        "/much" => {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            let pieces = (0..1024).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
            Body::from_stream(stream::iter(pieces)).into_response()
        }
        "/headers" => [("x-much", "x".repeat(1_000_000))].into_response(),
        "/cut" => {
            let pieces = [
                Ok(Bytes::from_static(b"half")),
                Err(std::io::Error::other("cut")),
            ];
            Body::from_stream(stream::iter(pieces)).into_response()
        }
        "/silence" => std::future::pending().await,
        _ => "hello".into_response(),
    }
}

fn client(policy: EgressPolicy, names: Arc<Names>) -> Egress {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    Egress::with_resolver(policy, names).unwrap()
}

fn get(url: &str) -> Outgoing {
    Outgoing {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
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
    // There and back again: what was left behind stays there.
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
