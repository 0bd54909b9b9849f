//! The floor: the turn on Temporal's bare Rust SDK, without events, claims, store or reader. A product on Temporal with
//! these activities cannot cost less than the floor.
//!
//! The messages of the conversation pass through the workflow, as in the peers of other languages.

// The SDK's macros need public types, and generate undocumented markers beside every method. Activities are
// asynchronous functions, even without an `await`.
#![allow(missing_docs, unreachable_pub, clippy::unused_async)]

use std::{sync::Arc, time::Duration};

use clap::Args;
use futures::future::join_all;
use reqwest::Client as HttpClient;
use serde_json::{Value, json};
use temporalio_common::ActivityError;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions, activities::ActivityContext, runtime::RuntimeOptions,
};
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowContextView, WorkflowResult};

/// Timeout of an activity, equal to the peers' timeout.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Workflow of an agent's turn.
#[workflow]
pub struct Turn {
    message: String,
}

#[workflow_methods]
impl Turn {
    #[init]
    pub fn new(_: &WorkflowContextView, message: String) -> Self {
        Self { message }
    }

    #[run(name = "turn")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<String> {
        let message = ctx.state(|state| state.message.clone());
        let mut messages = vec![json!({"role": "user", "content": message})];
        loop {
            let options = || ActivityOptions::start_to_close_timeout(TIMEOUT);
            let reply = ctx.execute_activity(Activities::llm, messages.clone(), options());
            let reply = reply.await?;
            messages.push(reply.clone());
            let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
            if calls.is_empty() {
                return Ok(text(&reply["content"]));
            }
            let results = calls.iter().map(|call| {
                let arguments = text(&call["function"]["arguments"]);
                ctx.execute_activity(Activities::calculate, arguments, options())
            });
            let results: Vec<_> = results.collect();
            for (call, result) in calls.iter().zip(join_all(results).await) {
                messages
                    .push(json!({"role": "tool", "tool_call_id": call["id"], "content": result?}));
            }
        }
    }
}

/// The worker's activities.
pub struct Activities {
    http: HttpClient,
    url: String,
}

#[activities]
impl Activities {
    /// Calls the model, and collects the streamed reply.
    #[activity]
    pub async fn llm(
        self: Arc<Self>,
        _: ActivityContext,
        messages: Vec<Value>,
    ) -> Result<Value, ActivityError> {
        let tool = json!({"type": "function", "function": {"name": "calculate", "parameters": {"type": "object"}}});
        let body = json!({"model": "m", "messages": messages, "tools": [tool], "stream": true});
        let answer = self.http.post(&self.url).json(&body).send().await;
        let stream = answer.map_err(anyhow::Error::from)?.text().await;
        Ok(reply(&stream.map_err(anyhow::Error::from)?))
    }

    /// The tool `calculate`, with a constant result.
    #[activity]
    pub async fn calculate(
        _: ActivityContext,
        _arguments: String,
    ) -> Result<String, ActivityError> {
        Ok("42".to_owned())
    }
}

/// Joins the deltas of a stream.
fn reply(stream: &str) -> Value {
    let (mut content, mut calls) = (String::new(), Vec::new());
    for data in stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
    {
        let chunk: Value = serde_json::from_str(data).unwrap_or_default();
        let delta = &chunk["choices"][0]["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for mut call in delta["tool_calls"].as_array().cloned().unwrap_or_default() {
            // Only a stream has the field. Providers refuse it in a request.
            if let Some(call) = call.as_object_mut() {
                call.remove("index");
            }
            calls.push(call);
        }
    }
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Connection settings; every peer reads the environment variables.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, env = "TEMPORAL_ADDRESS")]
    address: String,
    #[arg(long, env = "TASK_QUEUE")]
    task_queue: String,
    #[arg(long, env = "MODEL_URL")]
    model_url: String,
}

/// Runs the worker until a kill. Prints `ready` after the start, like the other peers.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    // The HTTP client panics without a TLS backend, even for http.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default())?;
    let client = super::connect(&options.address).await?;
    let activities = Activities {
        http: HttpClient::new(),
        url: format!("{}/chat/completions", options.model_url),
    };
    let worker = WorkerOptions::new(options.task_queue.clone())
        .register_workflow::<Turn>()?
        .register_activities(activities)
        .build();
    let mut worker = Worker::new(&runtime, client, worker)?;
    println!("ready");
    Ok(worker.run().await?)
}
