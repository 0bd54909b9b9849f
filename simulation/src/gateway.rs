//! Gateways: the product's own router, reconciler and watch of leases above the product's store, with the model as the
//! engine. A call to the engine may be lost before or after its effect.

use std::{
    collections::HashSet,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, header::CONTENT_TYPE},
};
use everturn_gateway::{
    GatewayConfig, GatewayState, LostWorkerWatch, Ports, Reconciler, TurnStarter,
    config::ReconcilerConfig,
    lost_workers::Looks,
    router,
    turns::{
        ActivityRestarter, ApprovalOutcome, HooksOutcome, RunningWorkflow, StartMessages,
        StartOutcome, TurnError, hooks_input, ring, start_input, turn_input,
    },
};
use everturn_proto::{
    ids,
    turn::{Cancel, ResolveApproval, ToolResultStored},
    words::ApprovalRefusal,
};
use everturn_store::{
    BlobFiles, BlobRules, Conversation, DueHooks, RunningAgentExecution, WorkerId,
};
use everturn_stream::InProcessStream;
use serde_json::Value;
use tower_service::Service as _;

use crate::{
    engine::{Engine, Update},
    leases::Leases,
    payloads::payload,
    worker::number_of,
    world::World,
};

/// How often a call to the engine is lost, in 100 calls: a third of the calls without an effect, a third with a late effect,
/// and a third with an effect at once.
const LOST_CALLS: usize = 6;
/// How often a call with an answer to an approval is lost. A person may have another mind after such a call.
const LOST_ANSWERS: usize = 30;

/// The most looks at an update, until the gateway gives up.
const MAX_UPDATE_LOOKS: usize = 20;

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A gateway process.
#[derive(Clone)]
pub(crate) struct Gateway {
    /// The product's router.
    pub(crate) router: Router,
    /// The product's reconciler.
    pub(crate) reconciler: Arc<Reconciler>,
    /// The product's looks at the leases of workers; absent while a look is under way.
    pub(crate) watch: Arc<Mutex<Option<Looks>>>,
    /// The leases that the watch looks at.
    pub(crate) leases: Arc<Leases>,
}

/// The pace of the reconciler. The looks of the simulation choose their times, and no look waits for its budget.
fn pace() -> ReconcilerConfig {
    let at_once = NonZeroU32::new(1_000_000).unwrap_or(NonZeroU32::MIN);
    ReconcilerConfig {
        every: Duration::from_hours(1),
        calls_per_second: at_once,
        lists_per_second: at_once,
        ..ReconcilerConfig::default()
    }
}

/// Makes a gateway.
pub(crate) fn gateway(world: &World) -> Gateway {
    let store = Arc::new(world.store.clone());
    let turns = Arc::new(ModelTurns(world.clone()));
    let stream = Arc::new(InProcessStream::default());
    let leases = Arc::new(Leases::new(world));
    let watch = LostWorkerWatch::new(leases.clone(), turns.clone()).looks();
    Gateway {
        router: routes(world, turns.clone(), stream.clone()),
        reconciler: Arc::new(Reconciler::new(store, turns, stream, pace())),
        watch: Arc::new(Mutex::new(Some(watch))),
        leases,
    }
}

fn routes(world: &World, turns: Arc<ModelTurns>, stream: Arc<InProcessStream>) -> Router {
    let store = Arc::new(world.store.clone());
    let ports = Ports {
        consents: None,
        counts: None,
        deliveries: None,
        events: store.clone(),
        conversations: store.clone(),
        messages: store.clone(),
        executions: store.clone(),
        turn_results: store.clone(),
        failures: store.clone(),
        past_calls: store.clone(),
        usage: store.clone(),
        outside: store.clone(),
        left_out: store.clone(),
        results: store.clone(),
        blobs: BlobFiles::new(store.clone(), None, BlobRules::default()),
        keys: store.clone(),
        owners: store.clone(),
        audit: store.clone(),
        tenants: store,
        stream: stream.clone(),
        cancels: stream,
        turns,
    };
    router(GatewayState::new(ports, GatewayConfig::default()))
}

/// Sends a request to a gateway. Returns the status and the answer.
///
/// # Errors
///
/// A sentence when the gateway gives no answer.
pub(crate) async fn ask(
    gateway: &Gateway,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<(u16, Value), String> {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1/agent{path}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .map_err(|error| error.to_string())?;
    let answered = gateway.router.clone().call(request).await;
    let answer = answered.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), MAX_ANSWER_BYTES).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Posts a request to a gateway, as [`ask`].
///
/// # Errors
///
/// As [`ask`].
pub(crate) async fn post(
    gateway: &Gateway,
    path: &str,
    body: &Value,
) -> Result<(u16, Value), String> {
    ask(gateway, Method::POST, path, body).await
}

/// The model of the engine, as the gateway's port.
struct ModelTurns(World);

impl ModelTurns {
    /// Calls the engine.
    async fn call<T>(
        &self,
        label: &str,
        effect: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, TurnError> {
        self.losing(LOST_CALLS, label, effect).await
    }

    /// Calls the engine. `lost` of 100 calls are lost.
    async fn losing<T>(
        &self,
        lost: usize,
        label: &str,
        effect: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, TurnError> {
        let Self(world) = self;
        world.schedule.step(label).await;
        let error = || TurnError("the call was lost".into());
        if world.fault(lost / 3) {
            return Err(error());
        }
        if world.fault(lost / 3) {
            world.schedule.tell("the call is late");
            world.delay(Box::new(move |engine| {
                effect(engine);
            }));
            return Err(error());
        }
        let result = effect(&mut world.engine());
        world.schedule.step(&format!("{label}: answered")).await;
        if world.fault(lost / 3) {
            return Err(error());
        }
        Ok(result)
    }
}

#[async_trait]
impl TurnStarter for ModelTurns {
    async fn submit(&self, conversation: &Conversation, message_id: &str) -> Result<(), TurnError> {
        let id = ids::workflow_id(&conversation.id);
        let input = payload(&turn_input(conversation));
        let ring = payload(&ring(message_id));
        self.call("signals, perhaps with a start", move |engine| {
            engine.signal_with_start(&id, input, "submit", ring);
        })
        .await
    }

    async fn signal(&self, conversation_id: &str, message_id: &str) -> Result<bool, TurnError> {
        let id = ids::workflow_id(conversation_id);
        let ring = payload(&ring(message_id));
        let request_id = format!("submit/{message_id}");
        self.call("signals", move |engine| {
            engine.signal(&id, "submit", ring, Some(&request_id))
        })
        .await
    }

    async fn start(
        &self,
        conversation: &Conversation,
        messages: StartMessages,
    ) -> Result<StartOutcome, TurnError> {
        let id = ids::workflow_id(&conversation.id);
        let input = payload(&start_input(conversation, &messages));
        let looks = messages.has_waiting || messages.goes_on_at.is_some();
        let first = messages.first;
        let world = self.0.clone();
        self.call("starts a workflow", move |engine| {
            if engine.start(&id, input, &first) {
                if looks {
                    world.facts().promises.is_resumed();
                }
                return StartOutcome::Started;
            }
            let running = engine.running(&id).and_then(|number| engine.run(number));
            let is_own = running.is_some_and(|run| run.first_message.as_deref() == Some(&first));
            if is_own {
                StartOutcome::StartedBefore
            } else {
                StartOutcome::Busy
            }
        })
        .await
    }

    async fn start_hooks(&self, hooks: &DueHooks) -> Result<HooksOutcome, TurnError> {
        let id = ids::after_turn_workflow_id(&hooks.conversation_id, &hooks.agent_execution_id);
        let input = payload(&hooks_input(hooks));
        self.call("starts the hooks after a turn", move |engine| {
            if engine.start_once(&id, "after-turn", input) {
                HooksOutcome::Started
            } else if engine.running(&id).is_some() {
                HooksOutcome::Runs
            } else {
                HooksOutcome::Ended
            }
        })
        .await
    }

    async fn prepare(&self) -> Result<(), TurnError> {
        Ok(())
    }

    async fn workflow(&self, conversation_id: &str) -> Result<Option<RunningWorkflow>, TurnError> {
        let id = ids::workflow_id(conversation_id);
        self.call("describes the workflow", move |engine| {
            let running = engine.running(&id);
            running.map(|_| RunningWorkflow { task_attempt: 1 })
        })
        .await
    }

    async fn running(&self, conversation_ids: &[String]) -> Result<HashSet<String>, TurnError> {
        let conversation_ids = conversation_ids.to_vec();
        self.call("lists the workflows", move |engine| {
            let is_running = |id: &&String| engine.running(&ids::workflow_id(id)).is_some();
            conversation_ids
                .iter()
                .filter(is_running)
                .cloned()
                .collect()
        })
        .await
    }

    async fn cancel(
        &self,
        conversation_id: &str,
        message_id: &str,
        reason: &str,
    ) -> Result<bool, TurnError> {
        let id = ids::workflow_id(conversation_id);
        let cancel = Cancel {
            message_id: Some(message_id.to_owned()),
            reason: reason.to_owned(),
        };
        let cancel = payload(&cancel);
        let request_id = format!("cancel/{message_id}");
        self.call("signals a cancel", move |engine| {
            engine.signal(&id, "cancel", cancel, Some(&request_id))
        })
        .await
    }

    async fn resolve_approval(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        answer: ResolveApproval,
    ) -> Result<ApprovalOutcome, TurnError> {
        let id = asker(conversation_id, sub_agent);
        let update_id = ids::answer_id(&answer);
        let (input, asked) = (payload(&answer), update_id.clone());
        let sent = self.losing(LOST_ANSWERS, "sends the answer", move |engine| {
            engine.update(&id, &asked, "resolve_approval", input)
        });
        let Some(run) = sent.await? else {
            return Ok(ApprovalOutcome::NotRunning);
        };
        for _look in 0..MAX_UPDATE_LOOKS {
            let update = self.0.engine().update_of(run, &update_id);
            match update {
                Update::Completed => return Ok(ApprovalOutcome::Taken),
                Update::Refused(text) => {
                    return Ok(ApprovalOutcome::Refused(ApprovalRefusal::of_message(&text)));
                }
                Update::NotFound => return Ok(ApprovalOutcome::NotRunning),
                Update::Admitted | Update::Accepted => {}
            }
            self.0.schedule.step("waits for the turn").await;
        }
        Ok(ApprovalOutcome::Unanswered)
    }

    async fn tool_result(
        &self,
        conversation_id: &str,
        sub_agent: Option<&str>,
        execution_id: &str,
    ) -> Result<(), TurnError> {
        let id = asker(conversation_id, sub_agent);
        let request_id = format!("tool_result/{execution_id}");
        let stored = ToolResultStored {
            execution_id: execution_id.to_owned(),
        };
        let stored = payload(&stored);
        self.call("signals a result", move |engine| {
            engine.signal(&id, "tool_result", stored, Some(&request_id));
        })
        .await
    }

    async fn terminate(&self, conversation_id: &str, _reason: &str) -> Result<(), TurnError> {
        let id = ids::workflow_id(conversation_id);
        let world = self.0.clone();
        self.call("terminates the workflow", move |engine| {
            // The gateway may die before the removal, so the accepted messages may outlive the workflow.
            world.facts().promises.is_terminated();
            engine.terminate(&id);
        })
        .await
    }

    async fn delete_runs(&self, _conversation_id: &str) -> Result<(), TurnError> {
        Ok(())
    }
}

/// Returns the id of the workflow of a turn, or of a sub-agent.
fn asker(conversation_id: &str, sub_agent: Option<&str>) -> String {
    match sub_agent {
        Some(call) => ids::sub_agent_workflow_id(conversation_id, call),
        None => ids::workflow_id(conversation_id),
    }
}

#[async_trait]
impl ActivityRestarter for ModelTurns {
    async fn restart_activities(
        &self,
        execution: &RunningAgentExecution,
        workers: &[WorkerId],
    ) -> Result<u32, TurnError> {
        let Self(world) = self;
        let id = asker(
            &execution.conversation_id,
            execution.sub_agent_call.as_deref(),
        );
        let numbers: Vec<_> = workers.iter().filter_map(number_of).collect();
        let mut engine = world.engine();
        let attempts = engine.attempts_of(&id, &numbers);
        for attempt in &attempts {
            world
                .schedule
                .tell(format!("a gateway: restarts attempt {}", attempt.id));
            world.facts().call_is_cut(*attempt);
            engine.retry_activity(*attempt);
        }
        Ok(u32::try_from(attempts.len()).unwrap_or(u32::MAX))
    }
}
