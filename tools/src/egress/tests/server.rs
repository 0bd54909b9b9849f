//! The server and the resolver that the requests meet.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing,
};
use futures::stream;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;

/// A resolver with names of its own, which counts how often it was asked.
#[derive(Default)]
pub(super) struct Names {
    names: BTreeMap<&'static str, Vec<IpAddr>>,
    pub(super) asked: AtomicUsize,
}

impl Names {
    pub(super) fn of<const N: usize>(names: [(&'static str, &[&str]); N]) -> Arc<Self> {
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

/// What the server was asked: the method with the path, the body, and the headers.
pub(super) type Seen = Arc<Mutex<Vec<(String, String, HeaderMap)>>>;

/// Starts a server on 127.0.0.1 that redirects, sends much, or never answers. Returns its port and what it was asked.
pub(super) async fn server() -> (u16, Seen) {
    let seen = Seen::default();
    let record = Arc::clone(&seen);
    let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
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
