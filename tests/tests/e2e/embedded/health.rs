//! What operators see of a process: probes that tell the truth, and metrics of what it has done.

use std::{collections::BTreeMap, net::TcpListener, time::Duration};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::{Process, Stack, binary},
    temporal::free_port,
    wait,
};
use serde_json::{Value, json};
use tokio::process::Command;

/// The address of the probes of a process.
pub(crate) struct Probes(String);

impl Probes {
    pub(crate) fn free() -> Self {
        Self(format!("127.0.0.1:{}", free_port()))
    }

    /// Starts a process of this role that answers probes here.
    pub(crate) fn spawn(
        &self,
        stack: &Stack,
        role: &[&str],
        environment: &[(&str, &str)],
    ) -> Process {
        let args = [role, &["--health-listen", &self.0]].concat();
        stack.spawn(&args, role[0], environment)
    }

    /// The status and the text of an answer; `None` while there is none.
    async fn get(&self, path: &str) -> Option<(u16, String)> {
        let answer = reqwest::get(format!("http://{}{path}", self.0))
            .await
            .ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    /// Waits until a probe has this status, and returns what it says.
    pub(crate) async fn says(&self, path: &str, status: u16) -> Value {
        let what = format!("{path} says {status}");
        wait::until(&what, || async {
            let (found, body) = self.get(path).await?;
            (found == status).then(|| serde_json::from_str(&body).unwrap())
        })
        .await
    }

    /// The exit code and the output of `everturn health` about the process.
    async fn asked_by_the_command(&self) -> (Option<i32>, String) {
        let mut command = Command::new(binary());
        let command = command.args(["health", &format!("http://{}", self.0)]);
        let output = command.output().await.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    /// Waits until the process waits for this.
    pub(crate) async fn waits_for(&self, what: &str) -> Value {
        let waits = json!({"status": "starting", "detail": format!("it waits for {what}")});
        wait::until(&format!("it waits for {what}"), || async {
            let said = self.says("/startupz", 503).await;
            (said == waits).then_some(said)
        })
        .await
    }

    /// The metrics as Prometheus reads them; `None` while nobody answers.
    pub(crate) async fn text(&self) -> Option<String> {
        let (status, text) = self.get("/metrics").await?;
        assert_eq!(status, 200);
        Some(text)
    }

    /// The series of the metrics, by name and labels as they are written.
    async fn metrics(&self) -> BTreeMap<String, f64> {
        let text = self.text().await.unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        series
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect()
    }
}

fn two_steps(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("Let me look.").call("test_read", &json!({})),
        _ => Reply::text("Here it is."),
    }
}

/// Starts a gateway and a worker that answer probes, and waits until both are ready.
async fn started(stack: &Stack) -> ((Probes, Process), (Probes, Process)) {
    let (of_gateway, of_worker) = (Probes::free(), Probes::free());
    let listen = format!("127.0.0.1:{}", stack.gateway_port(0));
    let gateway = of_gateway.spawn(stack, &["gateway", "--listen", &listen], &[]);
    let worker = of_worker.spawn(stack, &["worker"], &[]);
    for probes in [&of_gateway, &of_worker] {
        for path in ["/startupz", "/readyz", "/livez"] {
            assert_eq!(probes.says(path, 200).await, json!({"status": "ok"}));
        }
        let (code, said) = probes.asked_by_the_command().await;
        assert!(code == Some(0) && said.ends_with("is ready\n"), "{said}");
    }
    ((of_gateway, gateway), (of_worker, worker))
}

/// What a worker has counted after one turn with one tool.
const ONE_TURN: [(&str, f64); 12] = [
    ("everturn_turns_begun_total{agent=\"default\"}", 1.0),
    (
        r#"everturn_agents_ended_total{agent="default",agent_type="turn",status="completed",code=""}"#,
        1.0,
    ),
    (r#"everturn_turn_seconds_count{status="completed"}"#, 1.0),
    ("everturn_steps_total", 2.0),
    (
        r#"everturn_model_calls_total{agent="default",provider="scripted",model="scripted",result="ok"}"#,
        2.0,
    ),
    (
        r#"everturn_model_first_delta_seconds_count{provider="scripted",model="scripted"}"#,
        2.0,
    ),
    (
        r#"everturn_tools_ended_total{agent="default",tool="test_read",effect="read",status="completed"}"#,
        1.0,
    ),
    (r#"everturn_tool_seconds_count{effect="read"}"#, 1.0),
    (
        r#"everturn_model_tokens_total{agent="default",provider="scripted",model="scripted",direction="input"}"#,
        20.0,
    ),
    // The model has no price, and the series is there from the start.
    (
        r#"everturn_cost_usd_total{agent="default",model="scripted"}"#,
        0.0,
    ),
    (r#"everturn_save_seconds_count{batch="thought"}"#, 1.0),
    (r#"everturn_save_seconds_count{batch="end"}"#, 1.0),
];

#[tokio::test]
async fn a_turn_is_in_the_metrics_of_its_worker_and_its_gateway() {
    let stack = Stack::new(Model::start(two_steps).await)
        .await
        .with_gateways(1);
    let ((of_gateway, _gateway), (of_worker, _worker)) = started(&stack).await;
    let (conversation, message) = stack.ask("hello").await;
    let odd = reqwest::Method::from_bytes(b"MADE-UP").unwrap();
    let odd = stack.http.request(odd, stack.url() + "/made-up").send();
    assert_eq!(odd.await.unwrap().status(), 404);
    stack.ended(&conversation, 1).await;
    // Whoever reads the end may be quicker than the worker that counts it.
    let worker = wait::until("the end is counted", || async {
        let metrics = of_worker.metrics().await;
        let ended = "everturn_turn_seconds_count{status=\"completed\"}";
        metrics.contains_key(ended).then_some(metrics)
    })
    .await;
    for (series, value) in ONE_TURN {
        assert_eq!(worker.get(series), Some(&value), "{series} of {worker:#?}");
    }
    stack.logged("worker", "a turn has begun").await;
    stack.logged("worker", "tenant_id=\"default\"").await;
    stack.logged("worker", "an agent has ended").await;
    // What the SDK of Temporal counts is there, too.
    let has = |name: &str| worker.keys().any(|series| series.starts_with(name));
    for name in [
        "temporal_num_pollers{",
        "temporal_activity_execution_latency_seconds_count{",
        "temporal_workflow_endtoend_latency_seconds_count{",
        "temporal_worker_task_slots_available{",
        "everturn_database_connections{",
        "everturn_build{",
    ] {
        assert!(has(name), "{name} of {worker:#?}");
    }
    let gateway = of_gateway.metrics().await;
    let accepted = r#"everturn_http_requests_total{method="POST",path="/api/v1/agent/conversations/{id}/messages",status="202"}"#;
    assert_eq!(gateway.get(accepted), Some(&1.0), "{gateway:#?}");
    assert!(gateway.contains_key("everturn_reconciler_total{did=\"checked\"}"));
    assert!(gateway.contains_key("everturn_streams_open"));
    // Nobody can make up series.
    let ids = [
        conversation.as_str(),
        message.as_str(),
        "made-up",
        "MADE-UP",
    ];
    for series in worker.keys().chain(gateway.keys()) {
        assert!(
            !ids.iter().any(|id| series.contains(id)),
            "{series} has an id"
        );
    }
}

#[tokio::test]
async fn a_process_that_waits_says_for_what() {
    let stack = Stack::new(Model::start(|_| Reply::text("unused")).await).await;
    // Nobody answers there: the port is taken, and nothing is accepted.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let away = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    for role in [vec!["worker"], vec!["gateway", "--listen", "127.0.0.1:0"]] {
        let probes = Probes::free();
        let process = probes.spawn(&stack, &role, &[("TEMPORAL_ADDRESS", &away)]);
        let waits = probes.waits_for("Temporal").await;
        assert_eq!(probes.says("/readyz", 503).await, waits);
        let (code, said) = probes.asked_by_the_command().await;
        assert_eq!(code, Some(1));
        assert!(
            said.contains("503") && said.contains("waits for Temporal"),
            "{said}"
        );
        probes.says("/livez", 200).await;
        // What it waited for does not keep it from being stopped.
        process.terminate().await;
    }
}

#[tokio::test]
async fn a_process_that_stops_is_not_ready_and_lives() {
    let stack = Stack::new(Model::start(|_| Reply::text("unused")).await)
        .await
        .with_gateways(1);
    stack.configure_gateway("drain = \"20s\"");
    // The table has the key already.
    let file = stack.path("everturn.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("drain = \"0s\"", "", 1)).unwrap();
    let ((of_gateway, gateway), _worker) = started(&stack).await;
    let ending = tokio::spawn(gateway.terminate());
    let stops = of_gateway.says("/readyz", 503).await;
    assert_eq!(stops["status"], "stopping");
    of_gateway.says("/livez", 200).await;
    of_gateway.says("/startupz", 200).await;
    ending.abort();
}

#[tokio::test]
async fn an_address_that_is_taken_is_told() {
    let stack = Stack::new(Model::start(|_| Reply::text("unused")).await).await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let worker = ["worker", "--health-listen", &address];
    let said = stack.refused(&worker, &[]).await;
    assert!(said.contains("--health-listen"), "{said}");
}

#[tokio::test]
async fn a_request_whose_client_gives_up_is_counted() {
    let mut stack = Stack::new(Model::start(|_| Reply::text("unused")).await)
        .await
        .with_gateways(1);
    let temporal = stack.move_to_own_temporal().await;
    let ((of_gateway, _gateway), _worker) = started(&stack).await;
    temporal.stop().await;
    // The gateway tries for some seconds to reach Temporal.
    let message = json!({"content": "hello", "message_id": "m"});
    let made = stack.client().create_conversation(None).await.unwrap();
    let url = format!("{}/api/v1/agent/conversations/{made}/messages", stack.url());
    let post = stack.http.post(url).json(&message);
    let gave_up = post.timeout(Duration::from_millis(500)).send().await;
    assert!(gave_up.unwrap_err().is_timeout());
    let counted = r#"everturn_http_requests_total{method="POST",path="/api/v1/agent/conversations/{id}/messages",status="499"}"#;
    wait::until("it is counted", || async {
        let metrics = of_gateway.metrics().await;
        (metrics.get(counted) == Some(&1.0)).then_some(())
    })
    .await;
}
