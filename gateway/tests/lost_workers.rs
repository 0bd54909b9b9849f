//! What becomes of what a dead worker was doing: on the real store, with an engine that records what it is asked.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use everturn_gateway::{
    LostWorkerWatch,
    lost_workers::LostWorkerCounts,
    turns::{ActivityRestarter, TurnError},
};
use everturn_proto::{ids, turn::AgentDefinition};
use everturn_store::{
    BeginTurn, LostWorkers, OnUnknownAgent, RunningAgentExecution, StepClaim, StepClaims, StepKey,
    Turns, WorkerId, WorkerLease, WorkerLeases, sqlite::SqliteStore,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::until;

/// The shortest lease that a worker may have.
const LEASE: Duration = Duration::from_secs(1);

/// An engine in which each worker has begun with the conversation of its name.
#[derive(Default)]
struct Engine {
    asked: Mutex<Vec<String>>,
    /// Polls of workers that stand still: each takes what begins again once.
    polls: Mutex<u32>,
    restarted: Mutex<Vec<String>>,
    is_down: Mutex<bool>,
    /// The conversation about which the engine never answers.
    stuck: Mutex<Option<String>>,
}

impl Engine {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl ActivityRestarter for Engine {
    async fn restart_activities(
        &self,
        execution: &RunningAgentExecution,
        workers: &[WorkerId],
    ) -> Result<u32, TurnError> {
        let conversation = &execution.conversation_id;
        self.asked.lock().unwrap().push(conversation.clone());
        if *self.is_down.lock().unwrap() {
            return Err(TurnError("away".into()));
        }
        let is_stuck = self.stuck.lock().unwrap().as_ref() == Some(conversation);
        if is_stuck {
            std::future::pending::<()>().await;
        }
        let holds = |worker: &WorkerId| conversation.starts_with(worker.as_str());
        let mut restarted = self.restarted.lock().unwrap();
        if !workers.iter().any(holds) || restarted.contains(conversation) {
            return Ok(0);
        }
        let mut polls = self.polls.lock().unwrap();
        if *polls == 0 {
            restarted.push(conversation.clone());
        }
        *polls = polls.saturating_sub(1);
        Ok(1)
    }
}

struct World {
    store: SqliteStore,
    engine: Arc<Engine>,
}

impl World {
    async fn new() -> Self {
        Self {
            store: SqliteStore::open_in_memory().await.unwrap(),
            engine: Arc::default(),
        }
    }

    /// Starts to watch, as another gateway does. It ends when the guard is dropped.
    fn gateway(&self) -> (Arc<LostWorkerCounts>, DropGuard) {
        let watch = LostWorkerWatch::new(Arc::new(self.store.clone()), self.engine.clone())
            .lingering(2 * LEASE);
        let (counts, shutdown) = (watch.counts(), CancellationToken::new());
        tokio::spawn(watch.run(shutdown.clone()));
        (counts, shutdown.drop_guard())
    }

    /// Makes a worker that calls the model in one turn. Returns its lease and the turn's conversation.
    async fn worker(&self) -> (WorkerLease, String) {
        let worker = WorkerId::random();
        let lease = WorkerLease {
            identity: worker.identity("1@host"),
            worker,
            duration: LEASE,
        };
        self.store.renew_lease(&lease).await.unwrap();
        let conversation = format!("{}-1", lease.worker);
        let execution = ids::root_agent_execution_id(&conversation, "m");
        let begin = BeginTurn {
            conversation_id: conversation.clone(),
            tenant_id: "default".to_owned(),
            message_id: "m".to_owned(),
            content: Some("Hello.".to_owned()),
            agent_execution_id: execution.clone(),
            agent: AgentDefinition::only_a_name("default".to_owned()),
            on_unknown_agent: OnUnknownAgent::Begin,
            epoch: Some(0),
            tenant_budget: everturn_store::DayBudget::default(),
        };
        self.store.begin_turn(begin).await.unwrap();
        let step = StepKey {
            conversation_id: conversation.clone(),
            message_id: "m".to_owned(),
            agent_execution_id: execution,
            step: 0,
            epoch: None,
        };
        let claim = self.store.claim_step(&step, Some(&lease.worker)).await;
        assert!(matches!(claim.unwrap(), StepClaim::Call(_)));
        (lease, conversation)
    }

    /// Makes another worker, which lives as long as the guard and has nothing to do.
    fn idle_worker(&self) -> DropGuard {
        let worker = WorkerId::random();
        self.renew(&WorkerLease {
            identity: worker.identity("2@host"),
            worker,
            duration: LEASE,
        })
    }

    /// Renews a lease for as long as the guard lives.
    fn renew(&self, lease: &WorkerLease) -> DropGuard {
        let (store, lease, stop) = (self.store.clone(), lease.clone(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move {
            while !stopped.is_cancelled() {
                store.renew_lease(&lease).await.unwrap();
                tokio::time::sleep(LEASE / 5).await;
            }
        });
        stop.drop_guard()
    }

    /// Waits until this worker has no lease any more.
    async fn removed(&self, lease: &WorkerLease) {
        let has_lease = async || {
            let leases = self.store.leases().await.unwrap();
            leases.iter().any(|seen| seen.worker == lease.worker)
        };
        until(async || !has_lease().await).await;
    }
}

#[tokio::test]
async fn what_a_dead_worker_was_doing_begins_again_once() {
    let world = World::new().await;
    let (lives, held) = world.worker().await;
    let (dead, lost) = world.worker().await;
    let _renewing = world.renew(&lives);
    let gateways = [(); 3].map(|()| world.gateway());
    world.removed(&dead).await;
    // What the dead worker held comes first. The other turn is looked at, too, and not touched. Later it is done again.
    let (lost, held) = (lost.as_str(), held.as_str());
    assert_eq!(world.engine.asked(), [lost, held, lost, lost, held]);
    let sum = |of: fn(&LostWorkerCounts) -> u64| -> u64 {
        gateways.iter().map(|(counts, _)| of(counts)).sum()
    };
    assert_eq!(sum(LostWorkerCounts::workers), 1);
    assert_eq!(sum(LostWorkerCounts::activities), 1);
    let left = world.store.leases().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].worker, lives.worker);
}

/// The engine may have given it something as it stopped.
#[tokio::test]
async fn what_a_worker_that_has_ended_was_given_begins_again() {
    let world = World::new().await;
    let (ended, given) = world.worker().await;
    world.store.end_lease(&ended.worker).await.unwrap();
    let (counts, _guard) = world.gateway();
    world.removed(&ended).await;
    let given = given.as_str();
    assert_eq!(world.engine.asked(), [given, given, given]);
    assert_eq!((counts.workers(), counts.activities()), (0, 1));
}

#[tokio::test]
async fn a_worker_that_renews_is_never_dead() {
    let world = World::new().await;
    let _other = world.idle_worker();
    let (lives, _) = world.worker().await;
    let renewing = world.renew(&lives);
    let (counts, _guard) = world.gateway();
    until(async || counts.looks() >= 7).await;
    assert_eq!((counts.workers(), world.engine.asked().len()), (0, 0));
    drop(renewing);
    world.removed(&lives).await;
    assert_eq!((counts.workers(), counts.activities()), (1, 1));
}

#[tokio::test]
async fn an_engine_that_is_away_is_asked_again() {
    let world = World::new().await;
    let _other = world.idle_worker();
    let (dead, lost) = world.worker().await;
    *world.engine.is_down.lock().unwrap() = true;
    let (counts, _guard) = world.gateway();
    until(async || world.engine.asked().len() >= 2).await;
    let leases = world.store.leases().await.unwrap();
    assert!(leases.iter().any(|lease| lease.worker == dead.worker));
    *world.engine.is_down.lock().unwrap() = false;
    world.removed(&dead).await;
    assert_eq!((counts.workers(), counts.activities()), (1, 1));
    assert_eq!(world.engine.asked().last(), Some(&lost));
}

/// The engine does not know that a worker stands still, and gives it tasks for as long as it has polls of it.
#[tokio::test]
async fn what_a_worker_that_stands_still_is_given_again_begins_again() {
    const POLLS: u32 = 5;
    let world = World::new().await;
    let _other = world.idle_worker();
    let (still, lost) = world.worker().await;
    *world.engine.polls.lock().unwrap() = POLLS;
    let (counts, _guard) = world.gateway();
    until(async || world.engine.restarted.lock().unwrap().contains(&lost)).await;
    assert_eq!(world.engine.asked().len(), 1 + POLLS as usize);
    let leases = world.store.leases().await.unwrap();
    let taken = leases.iter().find(|lease| lease.worker == still.worker);
    assert_eq!(taken.unwrap().takes, 1, "not in a later take of the lease");
    assert_eq!(counts.workers(), 1);
}

/// A gateway asks the engine about each turn of a worker that has stopped. Meanwhile another worker dies.
#[tokio::test]
async fn long_restarts_do_not_hide_the_next_dead_worker() {
    let world = World::new().await;
    let _other = world.idle_worker();
    let (ended, given) = world.worker().await;
    world.store.end_lease(&ended.worker).await.unwrap();
    *world.engine.stuck.lock().unwrap() = Some(given.clone());
    let (counts, guard) = world.gateway();
    until(async || world.engine.asked() == [given.clone()]).await;
    let (_dead, lost) = world.worker().await;
    until(async || world.engine.restarted.lock().unwrap().contains(&lost)).await;
    assert_eq!(counts.workers(), 1);
    // The gateway still holds the lease of the first worker, which no other gateway may take.
    let looks = counts.looks();
    until(async || counts.looks() >= looks + 5).await;
    let takes = async || {
        let leases = world.store.leases().await.unwrap();
        let lease = leases.iter().find(|lease| lease.worker == ended.worker);
        lease.unwrap().takes
    };
    assert_eq!(takes().await, 1);
    // A gateway that stops leaves the lease to another gateway.
    drop(guard);
    let (_counts, _guard) = world.gateway();
    until(async || takes().await == 2).await;
}

/// No other worker shows whether workers can renew their leases.
#[tokio::test]
async fn the_only_worker_is_found_dead_in_the_documented_time() {
    let world = World::new().await;
    let (dead, lost) = world.worker().await;
    let died = Instant::now();
    let (counts, _guard) = world.gateway();
    until(async || world.engine.restarted.lock().unwrap().contains(&lost)).await;
    let found = died.elapsed();
    assert!(found > 4 * LEASE, "{found:?}");
    assert!(found < Duration::from_secs(10), "{found:?}");
    world.removed(&dead).await;
    assert_eq!(counts.workers(), 1);
}

/// A gateway that has just started, or that could not see the leases for a while, has to see for itself that a worker
/// gives no sign.
#[tokio::test]
async fn a_gateway_that_starts_late_gives_a_worker_its_time() {
    let world = World::new().await;
    let (late, _) = world.worker().await;
    let (counts, _guard) = world.gateway();
    until(async || counts.looks() >= 1).await;
    let _renewing = world.renew(&late);
    until(async || counts.looks() >= 5).await;
    assert_eq!(counts.workers(), 0);
}
