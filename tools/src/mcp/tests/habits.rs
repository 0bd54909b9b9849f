//! Habits of servers behind a URL.

use std::{io, sync::Mutex, time::Duration};

use axum::{
    body::Body,
    http::{Method, StatusCode},
    response::Response,
};
use everturn_proto::words::Effect;
use futures::{StreamExt, stream};
use serde_json::json;

use super::{
    echo, names,
    scripted::{ECHO, Got, Habit, Server, called, plain, respond},
};
use crate::{error::ToolError, registry::ToolSource};

const FORMS: [(&str, Habit); 12] = [
    ("a charset", |got, _| {
        called(got, "application/json; charset=utf-8", ECHO)
    }),
    ("no content type", |got, _| called(got, "", ECHO)),
    ("another content type", |got, _| {
        called(got, "text/plain", ECHO)
    }),
    ("a byte order mark", |got, _| {
        called(got, "application/json", &format!("\u{feff}{ECHO}"))
    }),
    ("an id with a fraction", |got, _| {
        called(got, "application/json", &ECHO.replace("ID", "ID.0"))
    }),
    ("an id as text", |got, _| {
        called(got, "application/json", &ECHO.replace("ID", "\"ID\""))
    }),
    ("a batch", |got, _| {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/strange","params":[]}"#;
        called(got, "application/json", &format!("[{log},{ECHO}]"))
    }),
    ("events with CR and LF", |got, _| {
        let text = format!(": hello\r\n\r\nretry: soon\r\nevent: result\r\ndata: {ECHO}\r\n\r\n");
        called(got, "Text/Event-Stream; charset=utf-8", &text)
    }),
    ("an event in several lines", |got, _| {
        let text = format!(
            "foo: bar\nid: 1\nid: 2\ndata: {}\n\n",
            ECHO.replace(',', ",\ndata: ")
        );
        called(got, "text/event-stream", &text)
    }),
    ("an event without an end", |got, _| {
        called(got, "text/event-stream", &format!("nonsense\ndata: {ECHO}"))
    }),
    ("events without their content type", |got, _| {
        called(
            got,
            "application/json",
            &format!("event: message\ndata: {ECHO}\n\n"),
        )
    }),
    ("messages before the answer", |got, _| {
        let strange = r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#;
        let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
        let roots = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
        let sample = r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}"#;
        let events = [strange, ping, roots, sample, "no message", ECHO];
        let text: String = events.map(|event| format!("data: {event}\n\n")).concat();
        called(got, "text/event-stream", &text)
    }),
];

/// Each habit leaves the answer readable. The tool runs once.
#[tokio::test]
async fn an_answer_is_read_in_each_form_of_its_body() {
    for (name, habit) in FORMS {
        let server = Server::start("/mcp", habit).await;
        let client = server.client(Effect::Once);
        for _call in 0..2 {
            assert_eq!(echo(&client).await, Ok(json!("echo")), "{name}");
        }
        let counts = (server.count("tools/call"), server.count("initialize"));
        assert_eq!(counts, (2, 1), "{name}");
    }
}

const LOSSES: [(&str, Habit); 6] = [
    ("an empty body", |got, _| {
        called(got, "application/json", "")
    }),
    ("a body that is cut", |got, _| {
        called(got, "application/json", &ECHO[..50])
    }),
    ("an error with another id in an event", |got, _| {
        let error =
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32603,"message":"lost"}}"#;
        called(got, "text/event-stream", &format!("data: {error}\n\n"))
    }),
    ("an error with no id in a batch", |got, _| {
        let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost"}}"#;
        called(got, "application/json", &format!("[{error}]"))
    }),
    ("a stream that ends", |got, _| {
        called(got, "text/event-stream", ": nothing\n\n")
    }),
    ("an event that is cut", |got, _| {
        called(got, "text/event-stream", &format!("data: {}", &ECHO[..50]))
    }),
];

/// Nobody can tell whether the tool ran, and no call is sent twice. The connection stays.
#[tokio::test]
async fn an_answer_that_is_lost_ends_its_call_at_once() {
    for (name, habit) in LOSSES {
        let server = Server::start("/mcp", habit).await;
        let client = server.client(Effect::Once);
        for _call in 0..2 {
            let error = echo(&client).await.unwrap_err();
            assert!(
                matches!(error, ToolError::Interrupted(_)),
                "{name}: {error:?}"
            );
        }
        let counts = (server.count("tools/call"), server.count("initialize"));
        assert_eq!(counts, (2, 1), "{name}");
    }
}

const HANDSHAKES: [(&str, Habit); 9] = [
    ("notifications with 200 and a text", |got, _| {
        got.is("notifications/initialized")
            .then(|| respond(200, "text/html", "ok"))
    }),
    ("notifications with 200 and events", |got, _| {
        got.is("notifications/initialized")
            .then(|| respond(200, "text/event-stream", ""))
    }),
    ("notifications with 400", |got, _| {
        got.is("notifications/initialized")
            .then(|| respond(400, "application/json", "{}"))
    }),
    ("a page in place of a stream", |got, _| {
        (got.method == Method::GET).then(|| respond(200, "text/html", "<html>"))
    }),
    ("an old version", |got, _| {
        let answer = r#"{"id":ID,"result":{"protocolVersion":"2024-10-07","capabilities":{"tools":[]}},"error":null}"#;
        initialized(got, "application/json", answer)
    }),
    ("an unknown version", |got, _| {
        let answer = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"DRAFT-2025","capabilities":{},"serverInfo":{"name":"x"}}}"#;
        initialized(got, "text/plain", answer)
    }),
    ("a version as a number", |got, _| {
        let answer = r#"{"jsonrpc":"2.0","id":"ID","result":{"protocolVersion":1,"capabilities":null,"serverInfo":null}}"#;
        initialized(
            got,
            "text/event-stream",
            &format!(": x\n\nevent: x\ndata: {answer}"),
        )
    }),
    ("a log before the answer", |got, _| {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":1}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#;
        initialized(got, "application/json", &format!("[{log},{answer}]"))
    }),
    ("a list in a batch", |got, _| {
        let list = r#"[{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"echo","inputSchema":[]}],"nextCursor":null}}]"#;
        let is_list = got.is("tools/list");
        is_list.then(|| {
            respond(
                200,
                "application/json",
                &list.replace("ID", &got.message["id"].to_string()),
            )
        })
    }),
];

/// Each habit is one of the handshake, or of the notifications.
#[tokio::test]
async fn a_handshake_that_is_almost_exact_connects() {
    for (name, habit) in HANDSHAKES {
        let server = Server::start("/mcp", habit).await;
        let client = server.client(Effect::Once);
        assert_eq!(names(&client).await, ["web__echo"], "{name}");
        assert_eq!(echo(&client).await, Ok(json!("echo")), "{name}");
    }
}

fn initialized(got: &Got, content_type: &str, body: &str) -> Option<Response> {
    let id = got.message["id"].to_string();
    got.is("initialize")
        .then(|| respond(200, content_type, &body.replace("ID", &id)))
}

/// Frameworks redirect `/mcp` to `/mcp/`. Secrets go to no other origin.
#[tokio::test]
async fn a_redirect_is_followed_within_its_origin() {
    static OTHER: Mutex<String> = Mutex::new(String::new());
    let server = Server::start("/mcp", |got, _| {
        (got.path == "/mcp").then(|| redirect(307, "/mcp/"))
    })
    .await;
    assert_eq!(echo(&server.client(Effect::Once)).await, Ok(json!("echo")));
    let elsewhere = Server::start("/mcp", |_, _| None).await;
    OTHER.lock().unwrap().clone_from(&elsewhere.url);
    let server = Server::start("/mcp", |got, _| {
        got.is("tools/call")
            .then(|| redirect(307, &OTHER.lock().unwrap()))
    })
    .await;
    let error = echo(&server.client(Effect::Once))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("307") && error.contains("set `url`"),
        "{error}"
    );
    assert!(
        error.contains("not called") && elsewhere.got().is_empty(),
        "{error}"
    );
    let server = Server::start("/mcp", |got, _| {
        got.is("tools/call").then(|| redirect(302, "/mcp/"))
    })
    .await;
    let error = echo(&server.client(Effect::Once))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("302"), "{error}");
}

fn redirect(status: u16, location: &str) -> Response {
    let response = Response::builder()
        .status(status)
        .header("location", location);
    response.body(Body::empty()).unwrap()
}

/// Some servers demand the version of the protocol, and the session, in each request after the handshake.
#[tokio::test]
async fn requests_carry_the_version_and_the_session() {
    let server = Server::start("/mcp", |got, _| {
        if got.is("initialize") {
            let mut response = plain(got);
            let session = "session-1".parse().unwrap();
            response.headers_mut().insert("mcp-session-id", session);
            return Some(response);
        }
        let is_later = !got.is("server/discover") && got.method == Method::POST;
        let is_fit = got.header("mcp-protocol-version") == Some("2025-06-18")
            && got.header("mcp-session-id") == Some("session-1");
        (is_later && !is_fit).then(|| respond(400, "text/plain", "Bad Request"))
    })
    .await;
    assert_eq!(echo(&server.client(Effect::Once)).await, Ok(json!("echo")));
}

/// Servers of the official SDK for Python 1.8 and 1.9 break for all clients when a session is ended.
#[tokio::test]
async fn a_session_is_ended_where_servers_survive_it() {
    let habits: [(Habit, usize); 2] = [
        (|got, _| in_session(got, "2025-03-26"), 0),
        (|got, _| in_session(got, "2025-06-18"), 1),
    ];
    for (habit, times) in habits {
        let server = Server::start("/mcp", habit).await;
        let client = server.client(Effect::Once);
        echo(&client).await.unwrap();
        client.close().await;
        let got = server.got();
        let ended = got.iter().filter(|got| got.method == Method::DELETE);
        assert_eq!(ended.count(), times);
    }
}

fn in_session(got: &Got, version: &str) -> Option<Response> {
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":ID,"result":{{"protocolVersion":"{version}","capabilities":{{}},"serverInfo":{{"name":"x","version":"1"}}}}}}"#
    );
    let mut response = initialized(got, "application/json", &answer)?;
    let session = "session-1".parse().unwrap();
    response.headers_mut().insert("mcp-session-id", session);
    Some(response)
}

/// A stream of a call that is cut after an event with an id is resumed behind the event.
#[tokio::test]
async fn a_stream_that_is_cut_is_resumed() {
    let server = Server::start("/mcp", |got, _| {
        if got.is("tools/call") {
            let begin =
                "id: e1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n";
            let cut = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Err(io::Error::other("cut"))
            };
            let begin = stream::once(async move { Ok(begin) });
            let body = Body::from_stream(begin.chain(stream::once(cut)));
            let response = Response::builder().header("content-type", "text/event-stream");
            return Some(response.body(body).unwrap());
        }
        if got.method == Method::GET && got.header("last-event-id") == Some("e1") {
            // The id of the only call: after `initialize` and `tools/list`.
            let text = format!("data: {}\n\n", ECHO.replace("ID", "\"2\""));
            return Some(respond(200, "text/event-stream", &text));
        }
        None
    })
    .await;
    assert_eq!(echo(&server.client(Effect::Once)).await, Ok(json!("echo")));
    assert_eq!(server.count("tools/call"), 1);
}

/// A call whose stream breaks off leaves a call beside it alone.
#[tokio::test]
async fn a_stream_that_breaks_off_ends_no_other_call() {
    let server = Server::start("/mcp", |got, earlier| match earlier {
        0 if got.is("tools/call") => {
            let pause = async {
                tokio::time::sleep(Duration::from_millis(700)).await;
                Ok::<_, io::Error>("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"echo\"}]}}\n\n")
            };
            let body = Body::from_stream(stream::once(pause));
            let response = Response::builder().header("content-type", "text/event-stream");
            Some(response.body(body).unwrap())
        }
        _ => called(got, "text/event-stream", ": nothing\n\n"),
    })
    .await;
    let client = server.client(Effect::Once);
    let (first, second) = tokio::join!(echo(&client), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        echo(&client).await
    });
    assert!(
        matches!(second, Err(ToolError::Interrupted(_))),
        "{second:?}"
    );
    assert_eq!(first, Ok(json!("echo")));
    assert_eq!(server.count("initialize"), 1);
}

/// A refusal with a challenge has its status, and is sent once.
#[tokio::test]
async fn a_challenge_is_a_refusal_with_its_status() {
    for (status, habit) in [
        (401, (|got, _| challenged(got, 401)) as Habit),
        (403, |got, _| challenged(got, 403)),
    ] {
        let server = Server::start("/mcp", habit).await;
        let error = echo(&server.client(Effect::Once))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&status.to_string()) && error.contains("not called"),
            "{error}"
        );
        assert_eq!(server.count("tools/call"), 1);
    }
}

fn challenged(got: &Got, status: u16) -> Option<Response> {
    got.is("tools/call").then(|| {
        let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
        let response = response.header("www-authenticate", "Bearer realm=\"x\"");
        response.body(Body::empty()).unwrap()
    })
}

/// A server that knows no pings, and refuses a call with a code of its own, is alive.
#[tokio::test]
async fn a_server_without_pings_keeps_its_connection() {
    let server = Server::start("/mcp", |got, _| {
        let refusal = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"not today"}}"#;
        called(got, "application/json", refusal)
    })
    .await;
    let client = server.client(Effect::Once);
    for _call in 0..2 {
        let error = echo(&client).await.unwrap_err();
        assert!(
            matches!(&error, ToolError::Failed(why) if why.contains("not today")),
            "{error:?}"
        );
    }
    assert_eq!((server.count("ping"), server.count("initialize")), (2, 1));
}

/// The server forgets its sessions, and says so with the request's id and a code of JSON-RPC.
#[tokio::test]
async fn a_lost_session_is_noticed_by_its_words() {
    let server = Server::start("/mcp", |got, _| {
        let is_lost = got.is("tools/call") || got.is("ping");
        let body =
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Session not found"}}"#;
        let body = body.replace("ID", &got.message["id"].to_string());
        is_lost.then(|| respond(404, "application/json", &body))
    })
    .await;
    let client = server.client(Effect::Once);
    echo(&client).await.unwrap_err();
    echo(&client).await.unwrap_err();
    assert_eq!(server.count("initialize"), 2);
}
