//! Reads workflows over the HTTP API of a Temporal server, whose JSON is that of the `temporal` CLI.
//!
//! A test looks again and again until a condition is true. A process of the CLI for each look would take more time of the
//! machine than the server takes. Must not be here: commands of operators, which run the CLI (`Temporal::cli`).

use everturn_proto::ids;
use reqwest::{StatusCode, Url, header::ACCEPT};
use serde_json::{Value, json};

use super::{NAMESPACE, Temporal};
use crate::wait;

/// JSON with payloads as the engine has them: base64 of their bytes.
const WITH_PAYLOADS: &str = "application/json+no-payload-shorthand";
/// JSON with each payload of JSON as its value.
const WITH_VALUES: &str = "application/json";

impl Temporal {
    /// Returns the description of a workflow's latest run. Payloads of JSON are their values, but search attributes are base64.
    pub async fn describe(&self, workflow_id: &str) -> Value {
        self.describe_run(workflow_id, "").await
    }

    /// Returns the description of one run of a workflow. Payloads of JSON are their values.
    pub async fn describe_run(&self, workflow_id: &str, run_id: &str) -> Value {
        let query = [("execution.runId", run_id)];
        self.expect(&["workflows", workflow_id], &query, WITH_VALUES)
            .await
    }

    /// Returns the history of one run of a conversation's workflow: `{"events": […]}`.
    pub async fn history_of_run(&self, conversation_id: &str, run_id: &str) -> Value {
        let workflow_id = ids::workflow_id(conversation_id);
        let found = self.find_history(&workflow_id, run_id).await;
        found.expect("the run has a history")
    }

    /// Returns the history of a workflow's latest run: `{"events": […]}`.
    pub async fn history(&self, workflow_id: &str) -> Value {
        let found = self.find_history(workflow_id, "").await;
        found.unwrap_or_else(|| panic!("no workflow {workflow_id}"))
    }

    /// Returns the history of a run, or of the latest run without a run id; `None` if the server knows no such run.
    pub async fn find_history(&self, workflow_id: &str, run_id: &str) -> Option<Value> {
        // The API has no path for an id with a slash, which the ids of sub-agents have.
        if workflow_id.contains('/') {
            let show = ["workflow", "show", "--workflow-id", workflow_id];
            return Some(self.json(&show).await);
        }
        let (mut events, mut next_page) = (Vec::new(), String::new());
        loop {
            let path = ["workflows", workflow_id, "history"];
            let query = [
                ("execution.runId", run_id),
                ("nextPageToken", next_page.as_str()),
            ];
            let page = self.read(&path, &query, WITH_PAYLOADS).await?;
            let more = page["history"]["events"].as_array();
            events.extend(more.into_iter().flatten().cloned());
            match page["nextPageToken"].as_str() {
                None | Some("") => return Some(json!({"events": events})),
                Some(token) => token.clone_into(&mut next_page),
            }
        }
    }

    /// Returns the executions that a query of visibility lists. Visibility is a little late.
    pub async fn list(&self, query: &str) -> Vec<Value> {
        let query = [("query", query)];
        let page = self.expect(&["workflows"], &query, WITH_VALUES).await;
        assert!(page["nextPageToken"].is_null(), "one page: {page}");
        page["executions"].as_array().cloned().unwrap_or_default()
    }

    /// Returns how many activities of a task queue wait for a worker.
    pub async fn backlog(&self, task_queue: &str) -> u64 {
        let query = [
            ("taskQueueType", "TASK_QUEUE_TYPE_ACTIVITY"),
            ("reportStats", "true"),
        ];
        let path = ["task-queues", task_queue];
        let described = self.expect(&path, &query, WITH_VALUES).await;
        // Protobuf's JSON has numbers of 64 bits as text.
        let waiting = described["stats"]["approximateBacklogCount"].as_str();
        waiting.map_or(0, |count| count.parse().unwrap())
    }

    /// Returns the build id of the version to which a task queue gives new workflow tasks. The engine tells its task queues
    /// of a new current version a moment after the command of the operator has succeeded.
    pub async fn current_version(&self, task_queue: &str) -> Option<String> {
        let query = [("taskQueueType", "TASK_QUEUE_TYPE_WORKFLOW")];
        let path = ["task-queues", task_queue];
        let described = self.expect(&path, &query, WITH_VALUES).await;
        let current = &described["versioningInfo"]["currentDeploymentVersion"];
        current["buildId"].as_str().map(str::to_owned)
    }

    async fn expect(&self, path: &[&str], query: &[(&str, &str)], accept: &str) -> Value {
        let found = self.read(path, query, accept).await;
        found.unwrap_or_else(|| panic!("the Temporal server does not know {path:?} {query:?}"))
    }

    /// Reads a resource; `None` if the server does not know it. A server on a busy machine may be late, and is asked
    /// again.
    async fn read(&self, path: &[&str], query: &[(&str, &str)], accept: &str) -> Option<Value> {
        let base = format!(
            "http://127.0.0.1:{}/api/v1/namespaces/{NAMESPACE}",
            self.http_port
        );
        let mut url = Url::parse(&base).unwrap();
        url.path_segments_mut().unwrap().extend(path);
        let given = query.iter().filter(|(_, value)| !value.is_empty());
        url.query_pairs_mut().extend_pairs(given);
        wait::until("the Temporal server answers in time", || async {
            let answer = self.http.get(url.clone()).header(ACCEPT, accept).send();
            let answer = answer.await.ok()?;
            match answer.status() {
                StatusCode::OK => answer.json().await.ok().map(Some),
                StatusCode::NOT_FOUND => Some(None),
                status => {
                    let said = answer.text().await.unwrap_or_default();
                    let is_late = status.is_server_error() || status.as_u16() == 429;
                    assert!(is_late, "{url}: {status} {said}");
                    None
                }
            }
        })
        .await
    }
}
