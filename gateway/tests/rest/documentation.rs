//! What people read: the page at `/`, the one at `/about`, and the example of docs/api/clients.md that listens to a stream.

use std::{collections::BTreeSet, fs, path::Path};

use everturn_gateway::{
    AuthConfig, GatewayConfig,
    live::sse::{StreamFrame, event_name},
};
use everturn_proto::words::EventType;

use crate::support::{Answer, TestGateway};

#[tokio::test]
async fn the_page_about_the_gateway_needs_nothing_else() {
    let gateway = TestGateway::start().await;
    let page = gateway.get("/about").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for absent in ["<script", "{{", "src=", "@import", "url("] {
        assert!(!page.text.contains(absent), "{absent} in {}", page.text);
    }
    let links: Vec<_> = page
        .text
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    for expected in ["/docs/", "/livez", "/readyz", "/docs/errors/queue_full"] {
        assert!(links.contains(&expected), "no link to {expected}");
    }
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => assert!(page.text.contains(&format!("id=\"{id}\"")), "{link}"),
            None => assert_eq!(gateway.get(link).await.status, 200, "{link}"),
        }
    }
}

#[tokio::test]
async fn the_page_runs_nothing_but_what_the_gateway_serves() {
    let gateway = TestGateway::start().await;
    let page = gateway.get("/").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    for absent in [
        "<style", "style=", "onload=", "http://", "https://", "unsafe",
    ] {
        let text = page.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    for path in ["/", "/page/app.js", "/page/worker.js", "/page/style.css"] {
        let file = gateway.get(path).await;
        assert_eq!(file.status, 200, "{path}");
        let policy = file.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        assert_eq!(file.header("referrer-policy"), "no-referrer");
        assert_eq!(file.header("cache-control"), "no-cache");
        let etag = file.header("etag");
        assert_eq!(policy, page.header("content-security-policy"));
        for (known, status) in [(etag, 304), ("\"another\"", 200)] {
            let request = gateway.request("GET", path).header("if-none-match", known);
            assert_eq!(request.send().await.unwrap().status(), status, "{path}");
        }
    }
    let missing = gateway.get("/page/none.js").await;
    missing.assert_problem(404, "not_found");
}

#[tokio::test]
async fn the_commands_of_the_page_ask_this_gateway() {
    let gateway = TestGateway::start().await;
    let page = gateway.get("/about").await;
    let api = format!("http://{}/api/v1/agent", gateway.address);
    assert_eq!(
        commands(&page.text),
        [
            format!(
                "curl -s {api}/conversations -H 'content-type: application/json' -d '{{\"id\":\"hello\"}}'"
            ),
            format!(
                "curl -sN {api}/chat -H 'content-type: application/json' \
                 -d '{{\"conversation_id\":\"hello\",\"message\":\"What is 2 + 2?\"}}'"
            ),
            format!("curl -s {api}/conversations/hello/messages"),
        ]
    );
    // A host that would do something in a shell is not printed.
    for (host, proto, shown) in [
        ("agents.example.com", "https", "https://agents.example.com/"),
        ("a$(b)", "http", "http://127.0.0.1:8080/"),
        ("a';b", "javascript", "http://127.0.0.1:8080/"),
    ] {
        let request = gateway.request("GET", "/about").header("host", host);
        let answer = request.header("x-forwarded-proto", proto).send().await;
        let page = Answer::of(answer.unwrap()).await;
        let command = &commands(&page.text)[0];
        assert!(
            command.starts_with(&format!("curl -s {shown}")),
            "{command}"
        );
    }
}

#[tokio::test]
async fn the_commands_have_a_credential_where_one_is_needed() {
    let config = GatewayConfig {
        auth: AuthConfig {
            required: true,
            ..AuthConfig::default()
        },
        ..GatewayConfig::default()
    };
    let gateway = TestGateway::with(config).await;
    let page = gateway.get("/about").await;
    assert_eq!(page.status, 200, "it asks nobody who they are");
    for command in commands(&page.text) {
        let header = " -H \"authorization: Bearer $EVERTURN_TOKEN\"";
        assert!(command.contains(header), "{command}");
    }
}

/// The commands of the page, as a browser shows them.
fn commands(page: &str) -> Vec<String> {
    let shown = page.split("<pre><code>").skip(1);
    shown
        .map(|rest| rest.split("</code>").next().unwrap())
        .map(|text| text.replace("&quot;", "\"").replace("&amp;", "&"))
        .collect()
}

#[test]
fn the_event_source_example_listens_to_every_frame() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("docs/api/clients.md")).unwrap();
    let example = text
        .split("```")
        .find(|block| block.starts_with("js") && block.contains("new EventSource"))
        .unwrap();
    let listened: BTreeSet<&str> = example.split('"').skip(1).step_by(2).collect();
    let events = EventType::ALL.iter().map(EventType::as_str).map(event_name);
    // The first frame of a chat, which is asked for by POST: no EventSource gets it.
    let frames = StreamFrame::ALL
        .into_iter()
        .filter(|frame| *frame != StreamFrame::Conversation);
    let sent: BTreeSet<&str> = events.chain(frames.map(StreamFrame::as_str)).collect();
    assert_eq!(
        listened, sent,
        "the example of docs/api/clients.md on the left, what is sent on the right"
    );
}
