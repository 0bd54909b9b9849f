//! One step at a time: actors are tasks of one thread, and wait at their steps until the schedule lets one of them go.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};

/// The number of an actor.
pub(crate) type ActorId = u64;

tokio::task_local! {
    static ACTOR: ActorId;
}

/// Whom an actor dies with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A worker process.
    Worker(usize),
    /// A gateway process.
    Gateway(usize),
}

struct Actor {
    name: String,
    owner: Owner,
    /// The step at which the actor waits.
    waits: Option<(String, oneshot::Sender<()>)>,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Actors {
    next: ActorId,
    all: BTreeMap<ActorId, Actor>,
    frozen: BTreeSet<Owner>,
    story: Vec<String>,
    /// The actors that ended with a panic.
    panicked: Vec<String>,
}

/// The end of an actor, also by a panic. Without the end, the schedule would wait for the actor for ever.
struct Ends {
    schedule: Schedule,
    id: ActorId,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let mut actors = self.schedule.lock();
        let actor = actors.all.remove(&self.id);
        if let Some(actor) = actor.filter(|_| thread::panicking()) {
            actors.panicked.push(actor.name);
        }
        self.schedule.moved.notify_one();
    }
}

/// The schedule, shared by the actors.
#[derive(Clone, Default)]
pub(crate) struct Schedule {
    actors: Arc<Mutex<Actors>>,
    moved: Arc<Notify>,
}

impl Schedule {
    fn lock(&self) -> MutexGuard<'_, Actors> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at a step until the schedule lets the actor go. Outside an actor, the call returns at once.
    pub(crate) async fn step(&self, label: &str) {
        let Ok(id) = ACTOR.try_with(|id| *id) else {
            return;
        };
        let (go, gone) = oneshot::channel();
        if let Some(actor) = self.lock().all.get_mut(&id) {
            actor.waits = Some((label.to_owned(), go));
        }
        self.moved.notify_one();
        // The schedule drops the sender of a dead actor, and the task ends at this await.
        if gone.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Starts an actor, and waits until the actor is at the first step.
    pub(crate) async fn spawn(
        &self,
        name: String,
        owner: Owner,
        work: impl Future<Output = ()> + 'static,
    ) {
        let id = {
            let mut actors = self.lock();
            actors.next += 1;
            let id = actors.next;
            let actor = Actor {
                name,
                owner,
                waits: None,
                task: None,
            };
            actors.all.insert(id, actor);
            id
        };
        let schedule = self.clone();
        let task = tokio::task::spawn_local(ACTOR.scope(id, async move {
            let ends = Ends { schedule, id };
            ends.schedule.step("begins").await;
            work.await;
        }));
        if let Some(actor) = self.lock().all.get_mut(&id) {
            actor.task = Some(task);
        }
        self.settled(id).await;
    }

    /// Waits until an actor is at a step or has ended.
    async fn settled(&self, id: ActorId) {
        loop {
            let is_settled = {
                let actors = self.lock();
                let actor = actors.all.get(&id);
                actor.is_none_or(|actor| actor.waits.is_some())
            };
            if is_settled {
                return;
            }
            self.moved.notified().await;
        }
    }

    /// Returns the actors that wait at a step, without the actors of frozen processes.
    pub(crate) fn waiting(&self) -> Vec<ActorId> {
        let actors = self.lock();
        let waiting = actors.all.iter();
        waiting
            .filter(|(_, actor)| actor.waits.is_some() && !actors.frozen.contains(&actor.owner))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Returns true while the process has an actor with this name.
    pub(crate) fn has(&self, owner: Owner, name: &str) -> bool {
        let actors = self.lock();
        let mut all = actors.all.values();
        all.any(|actor| actor.owner == owner && actor.name == name)
    }

    /// Stops the actors of a process at their steps, until the process wakes.
    pub(crate) fn freeze(&self, owner: Owner) {
        self.lock().frozen.insert(owner);
    }

    /// Lets the actors of a frozen process go on.
    pub(crate) fn wake(&self, owner: Owner) {
        self.lock().frozen.remove(&owner);
    }

    /// Returns true while the process is frozen.
    pub(crate) fn is_frozen(&self, owner: Owner) -> bool {
        self.lock().frozen.contains(&owner)
    }

    /// Lets an actor go to the next step, and waits for the actor's arrival.
    pub(crate) async fn release(&self, id: ActorId) {
        let go = {
            let mut actors = self.lock();
            let Some(actor) = actors.all.get_mut(&id) else {
                return;
            };
            let Some((label, go)) = actor.waits.take() else {
                return;
            };
            let line = format!("{}: {label}", actor.name);
            actors.story.push(line);
            go
        };
        if go.send(()).is_ok() {
            self.settled(id).await;
        }
    }

    /// Ends the actors of a process, wherever they are.
    pub(crate) fn kill(&self, owner: Owner) {
        let mut actors = self.lock();
        actors.frozen.remove(&owner);
        let of_owner = |actor: &Actor| actor.owner == owner;
        let dead: Vec<_> = actors
            .all
            .iter()
            .filter(|(_, actor)| of_owner(actor))
            .map(|(id, _)| *id)
            .collect();
        for id in dead {
            if let Some(task) = actors.all.remove(&id).and_then(|actor| actor.task) {
                task.abort();
            }
        }
    }

    /// Adds a line to the story of the run.
    pub(crate) fn tell(&self, line: impl Into<String>) {
        self.lock().story.push(line.into());
    }

    /// Returns the names of the actors that ended with a panic.
    pub(crate) fn panicked(&self) -> Vec<String> {
        self.lock().panicked.clone()
    }

    /// Returns the story of the run.
    pub(crate) fn story(&self) -> Vec<String> {
        self.lock().story.clone()
    }
}
