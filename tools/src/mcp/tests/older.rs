//! Servers of earlier years: programs that do not survive `server/discover`, and servers with the transport of protocol
//! 2024-11-05.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::sse::{Event, Sse},
    routing::{get, post},
};
use everturn_proto::words::Effect;
use everturn_supervisor::launch::Launch;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::{client_at, echo, names};
use crate::{
    error::ToolError,
    mcp::{McpServer, ServerLocation},
};

/// A server as a program in the shell. `$0` is a file with a line for each start, and `$1` tells what the program does with
/// `server/discover`.
const OLDER: &str = r#"
echo start >>"$0"
broken=
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
    case $line in
    *server/discover*)
        case $1 in
        ends) exit 1 ;;
        breaks) broken=1; answer '"error":{"code":-32602,"message":"not initialised"}' ;;
        refuses) answer '"error":{"code":-32601,"message":"no"}' ;;
        esac ;;
    *'"initialize"'*)
        if [ -n "$broken" ]; then exit 1; fi
        answer '"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*)
        answer '"result":{"content":[{"type":"text","text":"echo"}]}'
        exit 0 ;;
    esac
done
"#;

fn program(file: &str, habit: &str) -> McpServer {
    client_at(
        command(&["/bin/sh", "-c", OLDER, file, habit]),
        Effect::Once,
    )
}

fn command(words: &[&str]) -> ServerLocation {
    ServerLocation::Command {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        directory: None,
        environment: Vec::new(),
        environment_files: Vec::new(),
        launch: Launch::unconfined(),
    }
}

/// The program ends after each call, so that each call needs a connection of its own.
#[tokio::test]
async fn a_program_that_does_not_know_the_newer_protocol_is_asked_once() {
    for habit in ["ends", "breaks", "refuses", "keeps silent"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("starts").display().to_string();
        let client = program(&file, habit);
        for _call in 0..2 {
            let mut answer = echo(&client).await;
            // The program may end after the next call is written, and before its end is seen.
            while let Err(ToolError::Interrupted(_)) = answer {
                answer = echo(&client).await;
            }
            assert_eq!(answer, Ok(json!("echo")), "{habit}");
        }
        let starts = std::fs::read_to_string(&file).unwrap().lines().count();
        assert_eq!(starts, 3, "{habit}: one start to ask, and one a connection");
    }
}

/// A server of both protocols as a program in the shell that starts slowly. `$0` is a file with the calls. With `$1`, the program
/// runs only once at a time, and knows only the older protocol.
const SLOW: &str = r#"
if [ -n "$1" ]; then
    exec 9>"$0.lock"
    flock --nonblock 9 || exit 1
else
    sleep 3
fi
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
    case $line in
    *server/discover*)
        if [ -z "$1" ]; then
            answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}}'
        fi ;;
    *'"initialize"'*)
        answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *tools/list*) answer '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*)
        echo "$line" >>"$0"
        answer '"result":{"resultType":"complete","content":[{"type":"text","text":"echo"}]}' ;;
    esac
done
"#;

/// The silence of a slow start is no sign of the older protocol.
#[tokio::test]
async fn a_program_that_starts_slowly_is_asked_in_the_newer_protocol() {
    let directory = tempfile::tempdir().unwrap();
    for (only_one, is_newer) in [("", true), ("only one", false)] {
        let file = directory.path().join(format!("calls{only_one}"));
        let words = ["/bin/sh", "-c", SLOW, &file.display().to_string(), only_one];
        let client = client_at(command(&words), Effect::Once);
        assert_eq!(echo(&client).await, Ok(json!("echo")), "{only_one}");
        let calls = std::fs::read_to_string(&file).unwrap();
        assert_eq!(calls.contains("2026-07-28"), is_newer, "{calls}");
    }
}

/// A server as a program in the shell that answers each call with a line.
const ODD: &str = r#"
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
    case $line in
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*)
        answer '"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*)
        echo call >>"$0"
        printf '%b\n' "$1" | sed "s/ID/$id/g" ;;
    esac
done
"#;

/// A call ends at once, whatever the program writes. It runs once.
#[tokio::test]
async fn a_program_that_answers_oddly_hangs_no_call() {
    let echo_of = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let read = [
        echo_of("echo").replace(',', ",\\n"),
        format!("[{}]", echo_of("echo")),
        format!("INFO {{ready}} {}", echo_of("echo")),
        echo_of("echo").replace("\"id\":ID", "\"id\":ID.0"),
        format!(
            r#"{{"level":30,"id":ID,"msg":"called"}}\n{}"#,
            echo_of("echo")
        ),
    ];
    let lost = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#.to_owned(),
        echo_of(r#"say "no""#),
        echo_of("echo").chars().take(40).collect(),
    ];
    let outputs = read.map(|output| (output, true)).into_iter();
    for (output, is_read) in outputs.chain(lost.map(|output| (output, false))) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("calls").display().to_string();
        let client = client_at(
            command(&["/bin/sh", "-c", ODD, &file, &output]),
            Effect::Once,
        );
        let began = std::time::Instant::now();
        let answer = echo(&client).await;
        assert!(
            began.elapsed() < std::time::Duration::from_secs(30),
            "{output}"
        );
        if is_read {
            assert_eq!(answer, Ok(json!("echo")), "{output}");
        } else {
            assert!(
                matches!(answer, Err(ToolError::Interrupted(_))),
                "{output}: {answer:?}"
            );
        }
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "call\n",
            "{output}"
        );
    }
}

type Events = Arc<Mutex<Option<mpsc::UnboundedSender<Value>>>>;

async fn listen(
    State(events): State<Events>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    *events.lock().unwrap() = Some(sender);
    let address = stream::once(async {
        Event::default()
            .event("endpoint")
            .data("/messages?session=1")
    });
    let answers = stream::unfold(receiver, |mut receiver| async {
        let answer: Value = receiver.recv().await?;
        let event = Event::default().event("message").data(answer.to_string());
        Some((event, receiver))
    });
    Sse::new(address.chain(answers).map(Ok))
}

async fn take(State(events): State<Events>, Json(request): Json<Value>) -> StatusCode {
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => {
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "echo"}]}),
        _notification => return StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    let events = events.lock().unwrap();
    events.as_ref().unwrap().send(answer).unwrap();
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn a_server_with_one_stream_of_events_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let routes = Router::new()
        .route("/sse", get(listen))
        .route("/messages", post(take))
        .with_state(Events::default());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let location = ServerLocation::Url {
        url,
        headers: Vec::new(),
        header_files: Vec::new(),
        oauth: None,
    };
    let client = client_at(location, Effect::Once);
    assert_eq!(names(&client).await, ["web__echo"]);
    assert_eq!(echo(&client).await, Ok(json!("echo")));
}
