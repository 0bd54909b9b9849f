//! Throwaway.
#![allow(clippy::unwrap_used)]
use everturn_gateway::{
    TemporalTurns, TurnStarter,
    turns::{OnBusy, TemporalTurnsOptions},
};
use everturn_store::Conversation;
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};
#[tokio::test(flavor = "multi_thread")]
async fn smoke() {
    let bin = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/bin/temporal");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut args =
        vec!["server".to_owned(), "start-dev".into(), "--headless".into(), "--port".into(), port.to_string()];
    for a in ["ConversationId", "AgentName", "TenantId", "TurnStatus"] {
        args.push("--search-attribute".into());
        args.push(format!("{a}=Keyword"));
    }
    let mut server = tokio::process::Command::new(bin)
        .args(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let client = loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if let Ok(c) = Connection::connect(ConnectionOptions::new(reqwest::Url::parse(&url).unwrap()).build()).await {
            break Client::new(c, ClientOptions::new("default").build()).unwrap();
        }
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    let turns = TemporalTurns::new(client, TemporalTurnsOptions::default());
    let now = chrono::Utc::now();
    let c = Conversation {
        id: "c1".into(),
        tenant_id: "default".into(),
        agent: "default".into(),
        title: String::new(),
        message_count: 0,
        last_sequence: 0,
        created_at: now,
        updated_at: now,
    };
    println!("before: {:?}", turns.cancel("c1", "m").await);
    let t = Instant::now();
    turns.submit(&c, "m1", OnBusy::Queue).await.unwrap();
    turns.submit(&c, "m1", OnBusy::Steer).await.unwrap();
    println!("submits {:?}", t.elapsed());
    println!("cancel: {:?}", turns.cancel("c1", "m1").await);
    let cli = async |a: &[&str]| {
        let o = tokio::process::Command::new(bin)
            .args(a)
            .args(["--address", &format!("127.0.0.1:{port}")])
            .output()
            .await
            .unwrap();
        println!("{}", String::from_utf8_lossy(&o.stdout));
    };
    cli(&["workflow", "describe", "-w", "conversation-c1"]).await;
    cli(&["workflow", "show", "-w", "conversation-c1", "--output", "json"]).await;
    cli(&["workflow", "terminate", "-w", "conversation-c1"]).await;
    println!("after: {:?}", turns.cancel("c1", "m1").await);
    server.kill().await.unwrap();
    let t = Instant::now();
    println!("down: {:?} {:?}", turns.submit(&c, "m2", OnBusy::Queue).await.map_err(|e| e.to_string()), t.elapsed());
}
