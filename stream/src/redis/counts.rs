//! Counts in Redis that gateways share. The rules are in `scripts/spend.lua` and `scripts/hold.lua`.

use std::{sync::LazyLock, time::Duration};

use async_trait::async_trait;
use redis::{Script, ScriptInvocation};

use super::{RedisStream, error::Error, names::Names};
use crate::{
    api::StreamError,
    shared_counts::{Exceeded, Held, Holder, SharedCounts, Spent},
};

static SPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/spend.lua")));
static HOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/hold.lua")));

#[async_trait]
impl SharedCounts for RedisStream {
    async fn spend(&self, spent: &[Spent]) -> Result<Vec<Duration>, StreamError> {
        let script = spend(&self.inner.names, spent);
        let left: Vec<u64> = self.inner.commands.run(&script).await?;
        if left.len() != spent.len() {
            return Err(Error::Odd.into());
        }
        Ok(left.into_iter().map(Duration::from_micros).collect())
    }

    async fn hold(
        &self,
        holder: Holder<'_>,
        held: &[Held],
    ) -> Result<Option<Exceeded>, StreamError> {
        let script = hold(&self.inner.names, holder, held);
        let (index, open): (usize, u32) = self.inner.commands.run(&script).await?;
        Ok(index.checked_sub(1).map(|index| Exceeded { index, open }))
    }
}

fn spend(names: &Names, spent: &[Spent]) -> ScriptInvocation<'static> {
    let mut script = SPEND.prepare_invoke();
    for spent in spent {
        script.key(names.requests(&spent.of));
        script.arg(u64::try_from(spent.refill.as_micros()).unwrap_or(u64::MAX));
    }
    script
}

fn hold(names: &Names, holder: Holder<'_>, held: &[Held]) -> ScriptInvocation<'static> {
    let lifetime = u64::try_from(holder.lifetime.as_millis()).unwrap_or(u64::MAX);
    let mut script = HOLD.prepare_invoke();
    script.arg(holder.id).arg(holder.version).arg(lifetime);
    for held in held {
        script.key(names.streams(&held.of));
        script.arg(held.open).arg(held.most.map_or(-1, i64::from));
    }
    script
}
