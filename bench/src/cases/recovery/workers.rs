//! Two workers. Each worker sends its own API key to the model, which tells the workers apart.

use everturn_client::GatewayClient;
use everturn_tests::{
    backends::Backends,
    model::Model,
    stack::{Process, Stack},
};

use crate::world::measured_stack;

/// The running workers, with their gateway and servers.
pub(super) struct Workers {
    pub(super) stack: Stack,
    pub(super) client: GatewayClient,
    /// The running workers with their API keys.
    running: Vec<(String, Process)>,
    /// Number of workers started until now.
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

    /// Starts another worker, and waits until the worker takes tasks.
    pub(super) async fn add(&mut self) {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let environment = [("SCRIPTED_KEY", name.as_str())];
        let worker = self.stack.spawn(&["worker"], &name, &environment);
        self.stack.logged(&name, "worker is running").await;
        self.running.push((name, worker));
    }

    /// Removes and returns the worker that sent the latest request to the model.
    pub(super) fn take_speaker(&mut self) -> Process {
        let requests = self.stack.model.requests();
        let key = requests.last().map(|request| request.key.clone());
        let is_speaker = |(name, _): &(String, Process)| Some(name) == key.as_ref();
        let speaker = self.running.iter().position(is_speaker);
        let speaker = speaker.unwrap_or_else(|| panic!("no worker has asked with {key:?}"));
        self.running.swap_remove(speaker).1
    }
}
