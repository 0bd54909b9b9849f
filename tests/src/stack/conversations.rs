//! Requests of a test to the stack's gateway, and conditions that a test waits for.

use std::time::Duration;

use everturn_client::{Frame, GatewayClient};
use everturn_gateway::turns::{TemporalTurns, TemporalTurnsOptions};
use everturn_proto::{ids, words::EventType};
use futures::StreamExt;
use serde_json::Value;

use super::Stack;
use crate::{events::assert_gap_free, wait};

/// The size of a run's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySize {
    /// Number of events.
    pub events: u64,
    /// Number of bytes, as the engine counts them.
    pub bytes: u64,
}

impl Stack {
    /// Returns a client of the gateway. It comes back sooner than a gateway asks its readers to.
    pub fn client(&self) -> GatewayClient {
        let client = GatewayClient::new(&self.url()).unwrap();
        client.retrying_every(Duration::from_millis(500))
    }

    /// Creates a conversation with one message, and returns both ids.
    pub async fn ask(&self, content: &str) -> (String, String) {
        let client = self.client();
        let conversation_id = client.create_conversation(None).await.unwrap();
        let message_id = client
            .submit(&conversation_id, content, None)
            .await
            .unwrap();
        (conversation_id, message_id)
    }

    /// Sends a GET to the gateway's API, and returns the body.
    pub async fn get(&self, path: &str) -> Value {
        self.get_api(&format!("/api/v1/agent{path}")).await
    }

    /// Sends a GET to any path of the gateway, and returns the body.
    pub async fn get_api(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url());
        let response = self.http.get(url).send().await.unwrap();
        response.json().await.unwrap()
    }

    /// Sends a POST to the gateway's API, and returns status and body.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/api/v1/agent{path}", self.url());
        let answer = self.http.post(url).json(body).send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json().await.unwrap_or_default(),
        )
    }

    /// Returns all events of a conversation.
    pub async fn events(&self, conversation_id: &str) -> Vec<Value> {
        let (mut events, mut has_more) = (Vec::new(), true);
        while has_more {
            let from = events.len() + 1;
            let path = format!("/conversations/{conversation_id}/events?from_sequence={from}");
            let page = self.get(&path).await;
            events.extend(page["events"].as_array().cloned().unwrap_or_default());
            has_more = page["has_more"] == true;
        }
        events
    }

    /// Returns the types of all events of a conversation.
    pub async fn event_types(&self, conversation_id: &str) -> Vec<String> {
        let events = self.events(conversation_id).await;
        events
            .iter()
            .map(|event| event["event_type"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until this many turns of the conversation have ended, not counting sub-agents, and returns its events.
    pub async fn ended(&self, conversation_id: &str, turns: usize) -> Vec<Value> {
        let what = format!("{turns} turns of {conversation_id} have ended");
        let events = wait::until(&what, || async {
            let events = self.events(conversation_id).await;
            let ends = events.iter().filter(|event| {
                EventType::from(event["event_type"].as_str().unwrap()).ends_turn(
                    conversation_id,
                    event["message_id"].as_str().unwrap(),
                    event["event_data"]["agent_execution_id"].as_str(),
                )
            });
            (ends.count() >= turns).then_some(events)
        })
        .await;
        assert_gap_free(&events);
        events
    }

    /// Waits until the conversation has an event of this type.
    pub async fn saw(&self, conversation_id: &str, event_type: &str) {
        wait::until(&format!("{conversation_id} has {event_type}"), || async {
            self.event_types(conversation_id)
                .await
                .iter()
                .any(|found| found == event_type)
                .then_some(())
        })
        .await;
    }

    /// Waits until the model has had this many requests.
    pub async fn asked(&self, times: usize) {
        wait::until(&format!("the model was asked {times} times"), || async {
            (self.model.requests().len() >= times).then_some(())
        })
        .await;
    }

    /// Waits until the store knows the first response that the provider makes in the background. Only from then on does
    /// the next worker read it again.
    pub async fn has_noted_response(&self) {
        wait::until("the response is noted", || async {
            self.dump().await.contains("resp_1").then_some(())
        })
        .await;
    }

    /// Waits until the tools have had so many effects.
    pub async fn had_effects(&self, count: usize) {
        wait::until(&format!("tools have {count} effects"), || async {
            (self.effects().len() == count).then_some(())
        })
        .await;
    }

    /// Waits until the history of the conversation's latest run has so many events of a type
    /// (`WORKFLOW_EXECUTION_SIGNALED`).
    pub async fn has_in_history(&self, conversation_id: &str, event_type: &str, count: usize) {
        let event_type = format!("EVENT_TYPE_{event_type}");
        wait::until(&format!("{count} of {event_type}"), || async {
            let events = self.history(conversation_id).await;
            let is_of_type = |event: &&Value| event["eventType"] == event_type.as_str();
            (events.iter().filter(is_of_type).count() == count).then_some(())
        })
        .await;
    }

    /// Waits until the workflow of a conversation has this status, and returns its description.
    pub async fn workflow_status(&self, conversation_id: &str, status: &str) -> Value {
        let workflow_id = ids::workflow_id(conversation_id);
        wait::until(&format!("{workflow_id} is {status}"), || async {
            let described = self.temporal.describe(&workflow_id).await;
            let found = described["workflowExecutionInfo"]["status"]
                .as_str()
                .unwrap_or_default();
            found.ends_with(status).then_some(described)
        })
        .await
    }

    /// Posts a message to a conversation, and returns status and body.
    pub async fn send(&self, conversation_id: &str, body: &Value) -> (u16, Value) {
        let path = format!("/conversations/{conversation_id}/messages");
        self.post(&path, body).await
    }

    /// Waits until the workflow of a conversation runs, and returns the id of its run.
    pub async fn run_id(&self, conversation_id: &str) -> String {
        let described = self.workflow_status(conversation_id, "RUNNING").await;
        let execution = &described["workflowExecutionInfo"]["execution"];
        execution["runId"].as_str().unwrap().to_owned()
    }

    /// True when the conversation's workflow has had one run only.
    pub async fn has_one_run(&self, conversation_id: &str) -> bool {
        let history = self.history(conversation_id).await;
        let started = &history[0]["workflowExecutionStartedEventAttributes"];
        let before = started["continuedExecutionRunId"].as_str();
        before.unwrap_or_default().is_empty()
    }

    /// Returns the events in the history of the latest run of a conversation's workflow, as the JSON of the CLI.
    pub async fn history(&self, conversation_id: &str) -> Vec<Value> {
        let history = self
            .temporal
            .history(&ids::workflow_id(conversation_id))
            .await;
        history["events"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until the workflow of a conversation has completed, and returns the sizes of the histories of all its runs.
    pub async fn histories(&self, conversation_id: &str) -> Vec<HistorySize> {
        let workflow_id = ids::workflow_id(conversation_id);
        let mut sizes = Vec::new();
        for run_id in self.run_ids(conversation_id).await {
            let described = self.temporal.describe_run(&workflow_id, &run_id).await;
            // Protobuf's JSON has numbers of 64 bits as text.
            let number = |key: &str| {
                described["workflowExecutionInfo"][key]
                    .as_str()?
                    .parse()
                    .ok()
            };
            sizes.push(HistorySize {
                events: number("historyLength").unwrap_or(0),
                bytes: number("historySizeBytes").unwrap_or(0),
            });
        }
        sizes
    }

    /// Waits until the workflow of a conversation has completed, and returns the events in the history of each run.
    pub async fn events_of_runs(&self, conversation_id: &str) -> Vec<Vec<Value>> {
        let mut runs = Vec::new();
        for run_id in self.run_ids(conversation_id).await {
            let history = self.temporal.history_of_run(conversation_id, &run_id).await;
            runs.push(history["events"].as_array().cloned().unwrap_or_default());
        }
        runs
    }

    /// Waits until the workflow of a conversation has completed, and returns the ids of its runs.
    async fn run_ids(&self, conversation_id: &str) -> Vec<String> {
        let latest = self.workflow_status(conversation_id, "COMPLETED").await;
        let latest = latest["workflowExecutionInfo"]["execution"]["runId"]
            .as_str()
            .unwrap();
        let query = format!("WorkflowId = '{}'", ids::workflow_id(conversation_id));
        wait::until("all runs are listed", || async {
            let listed = self.temporal.list(&query).await;
            let run_ids = listed
                .iter()
                .filter_map(|run| run["execution"]["runId"].as_str().map(str::to_owned));
            let run_ids: Vec<_> = run_ids.collect();
            run_ids.iter().any(|id| id == latest).then_some(run_ids)
        })
        .await
    }

    /// Starts the workflow of a conversation with the `temporal` CLI, without the gateway.
    pub async fn start_by_hand(&self, conversation_id: &str, input: &Value) {
        let (workflow_id, input) = (ids::workflow_id(conversation_id), input.to_string());
        let start = ["workflow", "start", "--type", "agent-execution"];
        let to = ["--workflow-id", &workflow_id];
        let with = ["--task-queue", &self.task_queue, "--input", &input];
        self.temporal
            .succeed(&[&start[..], &to, &with].concat())
            .await;
    }

    /// Returns the gateways' port to the engine.
    pub async fn turns(&self) -> TemporalTurns {
        let options = TemporalTurnsOptions {
            task_queue: self.task_queue.clone(),
            ..TemporalTurnsOptions::default()
        };
        TemporalTurns::new(self.temporal.client().await, options)
    }

    /// Signals a message to the workflow of a conversation with the `temporal` CLI, without the gateway.
    pub async fn signal_message(&self, conversation_id: &str, message: &Value) {
        let (workflow_id, message) = (ids::workflow_id(conversation_id), message.to_string());
        let signal = ["workflow", "signal", "--name", "submit"];
        let to = ["--workflow-id", &workflow_id, "--input", &message];
        self.temporal.succeed(&[signal, to].concat()).await;
    }

    /// Terminates the workflow of a conversation, without any change in the store.
    pub async fn terminate(&self, conversation_id: &str) {
        let workflow_id = ids::workflow_id(conversation_id);
        let terminate = ["workflow", "terminate", "--workflow-id", &workflow_id];
        self.temporal.succeed(&terminate).await;
    }

    /// Cancels the workflow of a conversation with the `temporal` CLI, without the gateway.
    pub async fn cancel_workflow(&self, conversation_id: &str) {
        let workflow_id = ids::workflow_id(conversation_id);
        let cancel = ["workflow", "cancel", "--workflow-id", &workflow_id];
        self.temporal.succeed(&cancel).await;
    }

    /// Resets the workflow of a conversation to its beginning. A new run then repeats saves that the store already has.
    pub async fn reset(&self, conversation_id: &str) {
        let workflow_id = ids::workflow_id(conversation_id);
        let reset = ["workflow", "reset", "--workflow-id", &workflow_id];
        let to_its_beginning = ["--type", "FirstWorkflowTask", "--reason", "test"];
        let command = [&reset[..], &to_its_beginning].concat();
        self.temporal.succeed(&command).await;
    }

    /// Asks in a new conversation, and returns the conversation with the frames of the turn, up to `complete`.
    pub async fn frames_of_turn(&self, content: &str) -> (String, Vec<Frame>) {
        let client = self.client();
        let conversation = client.create_conversation(None).await.unwrap();
        let read = self.frames_until(&conversation, 0, |frame| frame.event == "complete");
        let (frames, sent) = tokio::join!(read, client.submit(&conversation, content, None));
        sent.unwrap();
        (conversation, frames)
    }

    /// Reads the event stream until a frame matches, and returns the frames.
    pub async fn frames_until(
        &self,
        conversation_id: &str,
        cursor: u32,
        is_last: impl Fn(&Frame) -> bool,
    ) -> Vec<Frame> {
        frames_until(&self.client(), conversation_id, cursor, is_last).await
    }
}

/// Reads an event stream until a frame matches, and returns the frames.
pub async fn frames_until(
    client: &GatewayClient,
    conversation_id: &str,
    cursor: u32,
    is_last: impl Fn(&Frame) -> bool,
) -> Vec<Frame> {
    let mut frames = std::pin::pin!(client.follow(conversation_id, cursor));
    let mut seen = Vec::new();
    let collect = async {
        while let Some(frame) = frames.next().await {
            seen.push(frame.clone());
            if is_last(&frame) {
                break;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(5), collect)
        .await
        .expect("the stream stays silent");
    seen
}
