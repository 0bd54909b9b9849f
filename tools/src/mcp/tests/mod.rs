//! A server that is restarted. Behind a URL, it does not know the sessions it had; as a program, it may not be there when a
//! call is sent.

mod habits;
mod hanging;
mod older;
mod scripted;
mod server;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use everturn_proto::Json;
use everturn_proto::words::Effect;
use everturn_supervisor::launch::Launch;
use serde_json::{Value, json};

use self::server::{Refusal, Scripted, Server};
use super::{McpServer, ServerLocation, ServerOptions, options::ALL_TOOLS};
use crate::{
    error::ToolError,
    registry::ToolSource,
    testing::{context, egress},
};

/// The client of a server, as one worker has it.
fn client(server: &Server, effect: Effect) -> McpServer {
    let location = ServerLocation::Url {
        url: server.url(),
        headers: Vec::new(),
        header_files: Vec::new(),
        oauth: None,
    };
    client_at(location, effect)
}

fn client_at(location: ServerLocation, effect: Effect) -> McpServer {
    let options = ServerOptions {
        effects: BTreeMap::from([(ALL_TOOLS.to_owned(), effect)]),
        ..ServerOptions::new("web", location)
    };
    McpServer::new(options, egress())
}

/// A server as a program in the shell: it answers the handshake and lists the tool `echo`. The first start answers
/// `server/discover` alone. The second start reads no more after the list. Later it answers calls, and it notes each of them in a file.
const DEAF_AT_FIRST: &str = r#"
echo start >>"$0.starts"
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
    case $line in
    *server/discover*) answer '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*)
        answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *tools/list*)
        if [ "$(wc -l <"$0.starts")" -eq 2 ]; then exec <&-; fi
        answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'
        if [ "$(wc -l <"$0.starts")" -eq 2 ]; then exec sleep 600; fi ;;
    *tools/call*)
        echo call >>"$0.calls"
        answer '"result":{"content":[{"type":"text","text":"echo"}]}' ;;
    esac
done
"#;

/// The program is alive, so that nothing but the write tells that it reads no more. What was not written is sent again, also
/// to a tool that must not run twice.
#[tokio::test]
async fn a_call_that_its_program_did_not_read_is_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("server").display().to_string();
    let command = ["/bin/sh", "-c", DEAF_AT_FIRST, &files];
    let location = ServerLocation::Command {
        command: command.map(str::to_owned).to_vec(),
        directory: None,
        environment: Vec::new(),
        environment_files: Vec::new(),
        launch: Launch::unconfined(),
    };
    let client = client_at(location, Effect::Once);
    assert_eq!(echo(&client).await, Ok(json!("echo")));
    let noted = |what: &str| std::fs::read_to_string(format!("{files}.{what}")).unwrap();
    assert_eq!(
        (noted("starts"), noted("calls")),
        ("start\nstart\nstart\n".into(), "call\n".into())
    );
}

async fn call(client: &McpServer, input: Value) -> Result<Value, ToolError> {
    let tool = client.find("web__echo", context().asker()).await?;
    let run = tool.tool().run(context(), Json::of(&input));
    // A call that hangs fails here, and not at the time-out of the test.
    let output = tokio::time::timeout(Duration::from_mins(2), run).await;
    Ok(output.expect("the call has an end")?.to_value())
}

async fn echo(client: &McpServer) -> Result<Value, ToolError> {
    call(client, json!({})).await
}

/// A number that the protocol's client would round reaches no server: a person may have approved every digit.
#[tokio::test]
async fn no_server_gets_a_rounded_number() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Once);
    echo(&client).await.unwrap();
    let tool = client.find("web__echo", context().asker()).await.unwrap();
    let input = Json::parse(r#"{"amount":12345678901234567890123}"#).unwrap();
    let refused = tool.tool().run(context(), input).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("12345678901234567890123"), "{text}");
    assert_eq!(server.calls(), 1);
    let exact = Json::parse(r#"{"amount":9007199254740993,"rate":1.50}"#).unwrap();
    tool.tool().run(context(), exact).await.unwrap();
    assert_eq!(server.calls(), 2);
}

#[tokio::test]
async fn the_first_call_after_a_restart_works() {
    for refusal in [
        Refusal::NotFound,
        Refusal::WithoutId,
        Refusal::NullId,
        Refusal::StrangeId,
    ] {
        let server = Server::start(refusal).await;
        let client = client(&server, Effect::Once);
        echo(&client).await.unwrap();
        server.forget_sessions();
        assert_eq!(echo(&client).await, Ok(json!("echo")), "{refusal:?}");
        assert_eq!((server.sessions(), server.calls()), (2, 2), "{refusal:?}");
    }
}

/// An error with the request's id could be the tool's own: a tool that must not run twice is not called again.
#[tokio::test]
async fn a_refusal_like_any_other_is_followed_by_a_new_session() {
    for (effect, is_sent_again) in [(Effect::Read, true), (Effect::Once, false)] {
        let server = Server::start(Refusal::WithId).await;
        let client = client(&server, effect);
        echo(&client).await.unwrap();
        server.forget_sessions();
        let first = echo(&client).await;
        assert_eq!(first.is_ok(), is_sent_again, "{first:?}");
        assert_eq!(echo(&client).await, Ok(json!("echo")));
        assert_eq!(server.sessions(), 2);
    }
}

#[tokio::test]
async fn a_call_that_is_refused_leaves_the_session_alone() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Read);
    let refused = call(&client, json!({"refuse": true})).await.unwrap_err();
    assert!(refused.to_string().contains("not today"), "{refused}");
    echo(&client).await.unwrap();
    assert_eq!((server.sessions(), server.calls()), (1, 2));
}

#[tokio::test]
async fn a_server_that_refuses_every_call_is_asked_twice() {
    let server = Server::start(Refusal::WithoutId).await;
    let client = client(&server, Effect::Once);
    echo(&client).await.unwrap();
    server.forget_sessions();
    server.refuse_calls();
    let error = echo(&client).await.unwrap_err();
    assert!(
        error.to_string().contains("the tool was not called"),
        "{error}"
    );
    assert_eq!((server.sessions(), server.calls()), (2, 1));
}

#[tokio::test]
async fn a_server_that_was_away_for_a_moment_is_found_again() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Once);
    echo(&client).await.unwrap();
    server.stop().await;
    let error = echo(&client).await.unwrap_err();
    assert!(
        error.to_string().contains("the tool was not called"),
        "{error}"
    );
    server.start_again().await;
    assert_eq!(echo(&client).await, Ok(json!("echo")));
    assert_eq!((server.sessions(), server.calls()), (2, 2));
}

/// A worker that calls nothing must not go on offering the tools of the server that was there before.
#[tokio::test]
async fn a_restart_is_noticed_without_a_call() {
    let server = Server::start(Refusal::WithoutId).await;
    let client = client(&server, Effect::Once);
    assert_eq!(names(&client).await, ["web__echo"]);
    server.stream_is_open().await;
    server.forget_sessions();
    server.rename_tool("reply");
    let noticed = async {
        while names(&client).await != ["web__reply"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let noticed = tokio::time::timeout(Duration::from_mins(2), noticed).await;
    noticed.expect("the new tool is offered");
    assert_eq!(server.sessions(), 2);
}

async fn names(client: &McpServer) -> Vec<String> {
    let tools: Arc<_> = client.tools(context().asker()).await;
    tools.keys().cloned().collect()
}

/// The answers from which nobody can tell whether the tool ran. The official SDK of Python answers with the first one when a
/// result cannot be serialised.
#[tokio::test]
async fn a_tool_that_may_have_run_is_not_called_again() {
    let unknown = [
        (
            500,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32603,"message":"it cannot be serialised"}}"#,
        ),
        (
            200,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"it cannot be serialised"}}"#,
        ),
        (
            400,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"it cannot be serialised"}}"#,
        ),
        (200, r#"{"jsonrpc":"2.0","id":ID,"result":7}"#),
        (502, "<html>Bad Gateway</html>"),
        (503, "{}"),
    ];
    for (status, body) in unknown {
        let server = Server::start(Refusal::NotFound).await;
        let client = client(&server, Effect::Once);
        echo(&client).await.unwrap();
        server.script([Scripted::json(status, body)]);
        let error = echo(&client).await.unwrap_err();
        assert!(
            matches!(error, ToolError::Interrupted(_)),
            "{status} {body}: {error:?}"
        );
        assert_eq!(
            (server.sessions(), server.calls()),
            (1, 2),
            "{status} {body}"
        );
        assert_eq!(echo(&client).await, Ok(json!("echo")));
    }
}

/// A 404 with the request's id is the tool's own answer.
#[tokio::test]
async fn an_answer_with_a_status_of_http_is_the_result_of_its_call() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Once);
    echo(&client).await.unwrap();
    let not_found =
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32004,"message":"order not found"}}"#;
    server.script([Scripted::json(404, not_found)]);
    let error = echo(&client).await.unwrap_err();
    assert!(
        matches!(&error, ToolError::Failed(why) if why.contains("order not found")),
        "{error:?}"
    );
    assert_eq!((server.sessions(), server.calls()), (1, 2));
}

#[tokio::test]
async fn a_refused_call_ends_no_other_call() {
    for (status, headers) in [
        (401, &[] as &[_]),
        (403, &[]),
        (405, &[]),
        (413, &[]),
        (429, &[("retry-after", "0")]),
        (503, &[("retry-after", "0")]),
        (500, &[]),
    ] {
        let server = Server::start(Refusal::NotFound).await;
        let client = client(&server, Effect::Once);
        echo(&client).await.unwrap();
        let refusal = Scripted {
            status,
            headers,
            body: "<html>no</html>".to_owned(),
        };
        server.script(std::iter::repeat_n(refusal, 3));
        let error = echo(&client).await.unwrap_err().to_string();
        assert!(error.contains(&status.to_string()), "{error}");
        let tries = if headers.is_empty() { 1 } else { 3 };
        assert_eq!(server.calls(), 1 + tries, "{status}");
        server.script([]);
        while server.calls() < 4 {
            echo(&client).await.unwrap_err();
        }
        assert_eq!(echo(&client).await, Ok(json!("echo")), "{status}");
        assert_eq!(server.sessions(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Once);
    echo(&client).await.unwrap();
    let busy = |status| Scripted {
        status,
        headers: &[("retry-after", "0")],
        body: String::new(),
    };
    server.script([busy(429), busy(503)]);
    assert_eq!(echo(&client).await, Ok(json!("echo")));
    assert_eq!((server.sessions(), server.calls()), (1, 4));
}

#[tokio::test]
async fn an_answer_that_is_almost_exact_is_read() {
    let server = Server::start(Refusal::NotFound).await;
    let client = client(&server, Effect::Once);
    let content = |content: &str| {
        Scripted::json(
            200,
            &format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":{content}}}}}"#),
        )
    };
    server.script([
        content(r#"[{"type":"text","text":"cut \ud83d"}]"#),
        content(r#""bare""#),
        Scripted::json(200, r#"debug: {"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"noisy"}]},"error":null}"#),
    ]);
    for expected in ["cut \u{FFFD}", "bare", "noisy"] {
        assert_eq!(echo(&client).await, Ok(json!(expected)));
    }
}
