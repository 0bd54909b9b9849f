//! Attacks by those who have no credential: on a gateway that asks for none, and on the connections of one that does.

use std::io::ErrorKind;

use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
    wait,
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

/// Connections that are opened at once, and as many as the gateway may have.
const FLOOD: usize = 600;
const MOST: usize = 100;

async fn stack() -> Stack {
    Stack::new(Model::start(|_| Reply::text("Hi there.")).await).await
}

/// A web site has its own name lead to this machine, so that a visitor's browser sends requests of the site's scripts to
/// the gateway. They are requests to the site's own origin, which no browser refuses.
#[tokio::test]
async fn a_site_that_leads_its_name_here_reads_and_changes_nothing() {
    let stack = stack().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    let path = format!("/api/v1/agent/conversations/{conversation}/events");
    let messages = format!("/api/v1/agent/conversations/{conversation}/messages");
    let browser = reqwest::Client::new();
    let from_site = |method: &str, path: &str| {
        let url = format!("{}{path}", stack.url());
        let request = browser.request(method.parse().unwrap(), url);
        request
            .header("host", "site.example")
            .header("sec-fetch-site", "same-origin")
    };
    let message = r#"{"content": "Delete everything."}"#;
    for request in [
        from_site("GET", "/api/v1/agent/conversations"),
        from_site("GET", &path),
        from_site("GET", &format!("{path}/stream")),
        from_site("POST", &messages)
            .header("origin", "http://site.example")
            .header("content-type", "application/json")
            .body(message),
    ] {
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(
            status == 403 && text.contains("host_not_allowed"),
            "{status} {text}"
        );
    }
    assert_eq!(stack.model.requests().len(), 1);
}

/// Whoever opens connections and never ends a request, its head or its body, keeps nobody out.
#[tokio::test]
async fn a_flood_of_connections_that_ask_nothing_keeps_nobody_out() {
    let stack = stack().await;
    stack.configure_gateway(&format!(
        "max_connections = {MOST}\nbody_timeout = \"1s\"\n"
    ));
    let _running = stack.start().await;
    let address = stack.url().replace("http://", "");
    let mut flood = Vec::new();
    for number in 0..FLOOD {
        let mut connection = TcpStream::connect(&address).await.unwrap();
        let begun = match number % 3 {
            0 => "",
            1 => "GET /livez HTTP/1.1\r\nx-slow: ",
            _ => {
                "POST /api/v1/agent/conversations HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
            }
        };
        // The gateway may have closed it by now.
        let _closed = connection.write_all(begun.as_bytes()).await;
        flood.push(connection);
    }
    let (conversation, _) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    let is_open = |connection: &&TcpStream| matches!(connection.try_read(&mut [0; 1000]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    wait::until("connections that are closed", || async {
        (flood.iter().filter(is_open).count() <= MOST).then_some(())
    })
    .await;
}
