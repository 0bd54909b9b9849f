//! The leases of workers in a store that may be slow, or away, for a look of a gateway; and a check of the leases that a
//! gateway takes.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use everturn_store::{
    LostWorkers, RunningAgentExecution, SeenLease, StoreError, WorkerId, sqlite::SqliteStore,
};

use crate::world::World;

/// The looks that a lease lasts.
pub(crate) const LOOKS: u32 = 4;
/// The duration of a lease in a slow look. Each call takes longer than a lease, and the simulation does not wait.
const SHORTER_THAN_A_CALL: Duration = Duration::from_nanos(1);

/// How the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Answers {
    /// At once.
    #[default]
    Quickly,
    /// Late, beside the duration of a lease.
    Slowly,
    /// Not at all.
    Never,
}

#[derive(Debug, Default)]
struct Looks {
    answers: Answers,
    /// The looks with an answer, since the store was away, and from the last slow look on.
    read: u32,
}

/// The leases for the watch of a gateway.
pub(crate) struct Leases {
    store: SqliteStore,
    world: World,
    looks: Mutex<Looks>,
}

impl Leases {
    /// Makes the leases of a new gateway.
    pub(crate) fn new(world: &World) -> Self {
        Self {
            store: world.store.clone(),
            world: world.clone(),
            looks: Mutex::default(),
        }
    }

    /// Notes how the store answers in the next look.
    pub(crate) fn begin_look(&self, answers: Answers) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match answers {
            Answers::Quickly => looks.read + 1,
            Answers::Slowly => 1,
            Answers::Never => 0,
        };
        *looks = Looks { answers, read };
    }

    /// Returns how the store answers, and the looks that count for a lease.
    fn looks(&self) -> (Answers, u32) {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        (looks.answers, looks.read)
    }

    fn answer(&self) -> Result<&SqliteStore, StoreError> {
        match self.looks().0 {
            Answers::Never => Err(StoreError::Unavailable("the store is away".into())),
            Answers::Quickly | Answers::Slowly => Ok(&self.store),
        }
    }
}

#[async_trait]
impl LostWorkers for Leases {
    async fn leases(&self) -> Result<Vec<SeenLease>, StoreError> {
        let mut leases = self.answer()?.leases().await?;
        if self.looks().0 == Answers::Slowly {
            for lease in &mut leases {
                lease.duration = SHORTER_THAN_A_CALL;
            }
        }
        Ok(leases)
    }

    async fn hold_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>, StoreError> {
        self.answer()?.hold_lease(seen).await
    }

    /// Takes a lease. The lease of a living worker may stand still because the store is slow, or away, so the looks before
    /// count for nothing. Between the first look that counts and this look, the lease has ended.
    async fn take_lease(&self, seen: &SeenLease) -> Result<Option<SeenLease>, StoreError> {
        let (_, read) = self.looks();
        if read <= LOOKS {
            let text = format!(
                "a gateway takes the lease of {} after {read} looks",
                seen.worker
            );
            self.world.facts().violation(text);
        }
        self.answer()?.take_lease(seen).await
    }

    async fn remove_lease(&self, taken: &SeenLease) -> Result<(), StoreError> {
        self.answer()?.remove_lease(taken).await
    }

    async fn running_agent_executions(
        &self,
        workers: &[WorkerId],
        limit: u32,
    ) -> Result<Vec<RunningAgentExecution>, StoreError> {
        self.answer()?
            .running_agent_executions(workers, limit)
            .await
    }
}
