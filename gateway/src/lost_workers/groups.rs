//! Restarts the activities of dead workers in tasks, so that the looks at the leases go on meanwhile.
//!
//! The workers that a look finds are a group with one task, because a task asks the engine about every running turn. The
//! tasks end with the watch. Other gateways then see leases without a holder, and take the leases.

use std::sync::Arc;

use everturn_store::{SeenLease, WorkerId};
use tokio::task::{AbortHandle, JoinSet};

use super::restarts::Restarts;

/// The workers of a group are in a common situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// A look has just found the workers dead.
    Dead,
    /// The workers have stopped in order, or have been dead for a while. Their groups must not delay the groups of
    /// workers that have just died.
    Later,
}

impl Lane {
    pub(super) const ALL: [Self; 2] = [Self::Dead, Self::Later];

    pub(super) fn of(lease: &SeenLease) -> Self {
        if lease.is_ended || lease.takes > 0 {
            Self::Later
        } else {
            Self::Dead
        }
    }

    /// Returns the most groups at a time. All groups share the calls to the engine, so more groups would make every group
    /// slower. Workers without a group wait, and their next group has all of them.
    const fn most_groups(self) -> usize {
        match self {
            Self::Dead => 4,
            Self::Later => 1,
        }
    }
}

/// The groups whose activities a gateway restarts.
pub(super) struct Groups {
    restarts: Arc<Restarts>,
    tasks: JoinSet<()>,
    running: Vec<Group>,
}

struct Group {
    lane: Lane,
    workers: Vec<WorkerId>,
    task: AbortHandle,
}

impl Groups {
    pub(super) fn new(restarts: Restarts) -> Self {
        Self {
            restarts: Arc::new(restarts),
            tasks: JoinSet::new(),
            running: Vec::new(),
        }
    }

    /// Forgets the groups whose tasks have ended.
    pub(super) fn tidy(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|group| !group.task.is_finished());
    }

    /// Waits until every group has ended.
    pub(super) async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.tidy();
    }

    /// Returns true if the lane may have another group.
    pub(super) fn has_room(&self, lane: Lane) -> bool {
        let groups = self.running.iter().filter(|group| group.lane == lane);
        groups.count() < lane.most_groups()
    }

    /// Returns true if the worker is in a group.
    pub(super) fn has(&self, worker: &WorkerId) -> bool {
        self.running
            .iter()
            .any(|group| group.workers.contains(worker))
    }

    /// Begins a group of workers whose leases this gateway has taken.
    pub(super) fn begin(&mut self, lane: Lane, taken: Vec<SeenLease>) {
        let workers = taken.iter().map(|lease| lease.worker.clone()).collect();
        let restarts = Arc::clone(&self.restarts);
        let task = self
            .tasks
            .spawn(async move { restarts.see_to(taken).await });
        self.running.push(Group {
            lane,
            workers,
            task,
        });
    }
}
