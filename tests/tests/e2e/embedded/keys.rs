//! Credentials with real processes: `everturn keys`, and gateways that require a key.

use std::{fs, process::Output};

use chrono::{DateTime, Utc};
use everturn_client::GatewayClient;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::{Process, Stack, ready},
    temporal::{self, free_port},
    wait,
};
use serde_json::Value;

/// Configuration of a gateway that requires a credential and soon notices that a key was revoked.
pub(crate) const AUTH: &str = "[auth]\nrequired = true\nkey_cache = \"100ms\"\n";

async fn stack() -> Stack {
    Stack::new(Model::start(|_: &Request| Reply::text("Hi there.")).await).await
}

async fn run(stack: &Stack, args: &[&str]) -> Output {
    stack.command(args, &[]).output().await.unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub(crate) async fn succeed(stack: &Stack, args: &[&str]) -> String {
    let output = run(stack, args).await;
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a key, and takes it from standard output as a script does.
pub(crate) async fn create(stack: &Stack, args: &[&str]) -> String {
    let secret = succeed(stack, &[&["keys", "create"], args].concat()).await;
    assert!(
        secret.starts_with("evk_") && secret.lines().count() == 1,
        "{secret}"
    );
    secret.trim().to_owned()
}

async fn list(stack: &Stack) -> Vec<Value> {
    serde_json::from_str(&succeed(stack, &["keys", "list", "--json"]).await).unwrap()
}

/// Starts a gateway that logs more than by default, and returns its URL, too.
async fn gateway(stack: &Stack) -> (Process, String) {
    let listen = format!("127.0.0.1:{}", free_port());
    let process = stack.spawn(
        &["gateway", "--listen", &listen],
        "gateway",
        &[("EVERTURN_LOG", "debug")],
    );
    let url = format!("http://{listen}");
    ready(&url).await;
    (process, url)
}

async fn status(url: &str, path: &str, key: &str) -> u16 {
    let request = reqwest::Client::new()
        .get(format!("{url}/api/v1{path}"))
        .bearer_auth(key);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn keys_open_the_gateway_until_they_are_revoked() {
    let stack = stack().await;
    stack.configure(AUTH);
    let key = create(
        &stack,
        &[
            "--tenant",
            "acme",
            "--owner",
            "ann",
            "--name",
            "phone",
            "--expires",
            "90d",
        ],
    )
    .await;
    let other = create(&stack, &["--tenant", "other", "--scope", "read"]).await;
    let _worker = stack.worker();
    let (_gateway, url) = gateway(&stack).await;
    assert_eq!(
        reqwest::get(format!("{url}/api/v1/agent/conversations"))
            .await
            .unwrap()
            .status(),
        401
    );

    the_key_opens_what_is_its_owners(&stack, &url, &key, &other).await;
    the_key_is_listed_and_revoked(&stack, &url, &key).await;
    let output = run(&stack, &["chat", "--url", &url, "--token", &key, "Hello"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("unauthenticated"),
        "{}",
        said(&output)
    );
    let states: Vec<_> = list(&stack)
        .await
        .iter()
        .map(|key| key["state"].clone())
        .collect();
    assert_eq!(states, ["revoked", "valid"]);
    assert_eq!(status(&url, "/agent/conversations", &other).await, 200);

    // Only its owner has the whole key.
    let secret = key.splitn(3, '_').nth(2).unwrap();
    assert!(!said(&output).contains(secret));
    is_not_kept(&stack, secret);
}

async fn the_key_opens_what_is_its_owners(stack: &Stack, url: &str, key: &str, other: &str) {
    let answer = succeed(stack, &["chat", "--url", url, "--token", key, "Hello"]).await;
    assert!(answer.contains("Hi there."), "{answer}");
    let client = GatewayClient::with_token(url, Some(key)).unwrap();
    let conversation = client.create_conversation(None).await.unwrap();
    let path = format!("/agent/conversations/{conversation}");
    assert_eq!(
        (
            status(url, &path, key).await,
            status(url, &path, other).await
        ),
        (200, 404)
    );
    let refused = GatewayClient::with_token(url, Some(other))
        .unwrap()
        .create_conversation(None)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("insufficient_scope"),
        "{refused}"
    );
}

async fn the_key_is_listed_and_revoked(stack: &Stack, url: &str, key: &str) {
    wait::until("the use of the key is noted", || async {
        list(stack)
            .await
            .iter()
            .find(|key| key["name"] == "phone")?["last_used_at"]
            .as_str()
            .map(drop)
    })
    .await;
    let id = key.split('_').nth(1).unwrap();
    let text = succeed(stack, &["keys", "list", "--tenant", "acme"]).await;
    assert_eq!(text.lines().count(), 2, "{text}");
    for word in [id, "valid", "acme", "ann", "read write", "phone"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    assert!(
        succeed(stack, &["keys", "revoke", id])
            .await
            .contains("revoked")
    );
    wait::until("the key is refused", || async {
        (status(url, "/agent/conversations", key).await == 401).then_some(())
    })
    .await;
}

/// Asserts that a secret is neither in the gateway's log nor in the database.
fn is_not_kept(stack: &Stack, secret: &str) {
    let logs = fs::read_to_string(stack.path("gateway.log")).unwrap();
    assert!(logs.contains("request"), "{logs}");
    assert!(!logs.contains(secret), "the log has it");
    for file in ["everturn.db", "everturn.db-wal"] {
        let stored = fs::read(stack.path(file)).unwrap_or_default();
        assert!(
            !stored
                .windows(secret.len())
                .any(|window| window == secret.as_bytes()),
            "{file}"
        );
    }
}

#[tokio::test]
async fn wrong_commands_say_what_is_right() {
    let stack = stack().await;
    for (args, code, expected) in [
        (&["keys", "create"][..], 2, "--tenant"),
        (
            &["keys", "create", "--tenant", "a/b"],
            2,
            "a tenant must have 1 to",
        ),
        (
            &["keys", "create", "--tenant", "t", "--owner", ""],
            2,
            "must not be empty",
        ),
        (
            &["keys", "create", "--tenant", "t", "--scope", "all"],
            2,
            "there are: read write approve calls codec admin admin:all",
        ),
        (
            &["keys", "create", "--tenant", "t", "--expires", "soon"],
            2,
            "90d",
        ),
        (
            &["keys", "create", "--tenant", "t", "--expires", "999999999y"],
            1,
            "too far away",
        ),
        (
            &["keys", "create", "--tenant", "t", "--name", "a\nb"],
            2,
            "no control characters",
        ),
        (
            &["keys", "revoke", "0011223344556677"],
            1,
            "there is no key `0011223344556677`",
        ),
        (&["keys", "revoke"], 2, "<ID>"),
    ] {
        let output = run(&stack, args).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(expected),
            "{args:?}: {}",
            said(&output)
        );
    }
    assert!(
        succeed(&stack, &["keys", "list"])
            .await
            .contains("everturn keys create --tenant"),
        "how to begin"
    );
    assert_eq!(list(&stack).await.len(), 0);
}

#[tokio::test]
async fn a_gateway_does_not_serve_everyone_by_accident() {
    let stack = stack().await;
    let port = free_port();
    let listen = format!("0.0.0.0:{port}");
    for role in ["gateway", "dev"] {
        let output = run(&stack, &[role, "--listen", &listen]).await;
        assert_eq!(output.status.code(), Some(1), "{role}");
        let said = said(&output);
        for word in [
            "refusing to listen",
            "required = true",
            "everturn keys create",
            "--insecure-no-auth",
        ] {
            assert!(said.contains(word), "{role}: {word} is missing: {said}");
        }
    }
    stack.configure(AUTH);
    let _gateway = stack.spawn(&["gateway", "--listen", &listen], "gateway", &[]);
    ready(&format!("http://127.0.0.1:{port}")).await;
    let answer = reqwest::get(format!(
        "http://127.0.0.1:{port}/api/v1/agent/conversations"
    ))
    .await
    .unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn dev_runs_its_turn_with_a_key_where_one_is_required() {
    let stack = stack().await;
    stack.configure(AUTH);
    let key = create(&stack, &["--tenant", "acme"]).await;
    let binary = temporal::binary();
    let (listen, port) = (
        format!("127.0.0.1:{}", free_port()),
        free_port().to_string(),
    );
    let args = [
        "dev",
        "--listen",
        &listen,
        "--temporal-port",
        &port,
        "--temporal-bin",
        binary.to_str().unwrap(),
    ];
    let once = [&args[..], &["--once", "Hello"]].concat();
    let refused = run(&stack, &once).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("unauthenticated"),
        "{}",
        said(&refused)
    );
    let output = stack
        .command(&once, &[("EVERTURN_TOKEN", &key)])
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success() && said(&output).contains("Hi there."),
        "{}",
        said(&output)
    );
}

#[tokio::test]
async fn keys_expire_as_configured_unless_they_say_otherwise() {
    let stack = stack().await;
    stack.configure("[auth]\nkey_lifetime = \"30d\"\n");
    for expires in [&[][..], &["--expires", "1h"], &["--expires", "never"]] {
        let name = expires.last().copied().unwrap_or("default");
        create(
            &stack,
            &[&["--tenant", "acme", "--name", name], expires].concat(),
        )
        .await;
    }
    for key in list(&stack).await {
        let time = |field: &str| {
            key[field]
                .as_str()
                .map(|text| text.parse::<DateTime<Utc>>().unwrap())
        };
        let created = time("created_at").unwrap();
        let lifetime = time("expires_at").map(|end| (end - created).num_hours());
        let expected = match key["name"].as_str().unwrap() {
            "default" => Some(24 * 30),
            "1h" => Some(1),
            _ => None,
        };
        // Both times are taken within the command, one after the other.
        assert_eq!(
            lifetime.map(|hours| hours.abs_diff(expected.unwrap()) <= 1),
            expected.map(|_| true),
            "{key}"
        );
    }
}
