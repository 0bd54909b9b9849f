//! Two workers at a time, told apart by the API keys that they send to the model.

use everturn_client::GatewayClient;
use everturn_tests::{
    backends::Backends,
    model::Model,
    stack::{Process, Stack},
};

use crate::world::measured_stack;

/// The workers, and what they run on.
pub(super) struct Workers {
    pub(super) stack: Stack,
    pub(super) client: GatewayClient,
    /// The workers, each with its API key.
    running: Vec<(String, Process)>,
    /// Number of workers so far.
    started: usize,
    _gateway: Process,
}

impl Workers {
    /// Starts two workers.
    pub(super) async fn start(model: Model) -> Self {
        let stack = measured_stack(Backends::measured(false).await, model, "").await;
        let gateway = stack.gateway_on(0, &[]).await;
        let mut workers = Self {
            client: stack.client(),
            stack,
            running: Vec::new(),
            started: 0,
            _gateway: gateway,
        };
        workers.add().await;
        workers.add().await;
        workers
    }

    /// Starts one more, and waits until it takes tasks.
    pub(super) async fn add(&mut self) {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let environment = [("SCRIPTED_KEY", name.as_str())];
        let worker = self.stack.spawn(&["worker"], &name, &environment);
        self.stack.logged(&name, "worker is running").await;
        self.running.push((name, worker));
    }

    /// Takes away the worker that asked the model last.
    pub(super) fn take_speaker(&mut self) -> Process {
        let requests = self.stack.model.requests();
        let key = requests.last().map(|request| request.key.clone());
        let is_speaker = |(name, _): &(String, Process)| Some(name) == key.as_ref();
        let speaker = self.running.iter().position(is_speaker);
        let speaker = speaker.unwrap_or_else(|| panic!("no worker has asked with {key:?}"));
        self.running.swap_remove(speaker).1
    }
}
