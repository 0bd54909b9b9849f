//! Readers of a list that come and leave while the list changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_store::{
    Access, Conversation, ConversationChange, Conversations, ListCursor, ListPage, ListQuery,
    ListVersion, NewAuditEntry, NewConversation, ResumePoint, ShownConversation, StoreError,
};
use shuttle::{
    future::{block_on, spawn, yield_now},
    thread,
};

use super::hub::{ListHub, ListReader};
use crate::orders::in_many_orders;

/// A list without rows, with a number of changes.
#[derive(Default)]
struct Listed(AtomicU32);

#[async_trait]
impl Conversations for Listed {
    async fn list_conversations(&self, _: &Access, _: &ListQuery) -> Result<ListPage, StoreError> {
        let id = self.0.load(SeqCst).to_string();
        yield_now().await;
        let active_at = chrono::DateTime::default();
        Ok(ListPage {
            conversations: Vec::new(),
            next: Some(ListCursor { active_at, id }),
        })
    }

    async fn list_versions(&self, callers: &[Access]) -> Result<Vec<ListVersion>, StoreError> {
        yield_now().await;
        Ok(vec![ListVersion::default(); callers.len()])
    }

    async fn create_conversation(
        &self,
        _: NewConversation,
    ) -> Result<Option<Conversation>, StoreError> {
        unimplemented!()
    }

    async fn conversation(&self, _: &Access, _: &str) -> Result<Option<Conversation>, StoreError> {
        unimplemented!()
    }

    async fn shown_conversation(
        &self,
        _: &Access,
        _: &str,
    ) -> Result<Option<ShownConversation>, StoreError> {
        unimplemented!()
    }

    async fn change_conversation(
        &self,
        _: &Access,
        _: &str,
        _: &ConversationChange,
    ) -> Result<Option<Conversation>, StoreError> {
        unimplemented!()
    }

    async fn delete_conversation(
        &self,
        _: &Access,
        _: &str,
        _: Option<&NewAuditEntry>,
    ) -> Result<bool, StoreError> {
        unimplemented!()
    }

    async fn resume_point(
        &self,
        _: &Access,
        _: &str,
        _: u32,
    ) -> Result<Option<ResumePoint>, StoreError> {
        unimplemented!()
    }
}

fn hub(listed: &Arc<Listed>) -> ListHub {
    ListHub::new(Arc::clone(listed) as Arc<dyn Conversations>, Duration::ZERO)
}

/// Reads the list until the list has so many changes.
async fn reads_to(mut reader: ListReader, changes: u32) {
    let mut read = 0;
    while read < changes {
        let frames = reader.next().await.expect("the tail has ended");
        read = frames.parse().unwrap();
    }
}

/// A reader that comes while the last reader leaves gets a later change. Every tail ends after its last reader.
pub fn a_list_has_a_tail_while_it_has_readers() {
    in_many_orders(|| {
        let listed = Arc::<Listed>::default();
        let hub = hub(&listed);
        let reads = || {
            let (listed, hub) = (Arc::clone(&listed), hub.clone());
            spawn(async move {
                for _ in 0..2 {
                    let reader = hub.open(&Access::tenant("a"));
                    let change = listed.0.fetch_add(1, SeqCst) + 1;
                    hub.changed(&Access::tenant("a"));
                    reads_to(reader, change).await;
                }
            })
        };
        for reader in [reads(), reads()] {
            block_on(reader).unwrap();
        }
        while hub.tails() > 0 {
            thread::yield_now();
        }
    });
}

/// A change at the gateway reaches the readers, without a query for the versions of the lists.
pub fn a_change_reaches_every_reader() {
    in_many_orders(|| {
        let listed = Arc::<Listed>::default();
        let hub = hub(&listed);
        let readers = [(), ()].map(|()| {
            let reader = hub.open(&Access::tenant("a"));
            spawn(reads_to(reader, 2))
        });
        for _ in 0..2 {
            listed.0.fetch_add(1, SeqCst);
            hub.changed(&Access::owner("a", "ann"));
        }
        for reader in readers {
            block_on(reader).unwrap();
        }
    });
}
