//! Each tenant has a share of memory: readers of a tenant that holds too much wait for memory, and lose nothing.

use std::{num::NonZeroUsize, sync::Arc};

use everturn_gateway::{
    GatewayConfig, TenantLimits,
    live::{Cursor, LiveHub, LiveReader},
};
use everturn_store::{Access, Conversations};
use everturn_stream::StreamOptions;
use futures::FutureExt;

use crate::support::world::{Onlooker, POLL, World, elapse, settle};

const READERS: usize = 20;
const STEPS: usize = 30;
const TEXT: usize = 16 * 1024;
const SHARE: usize = 64 * 1024;

fn hub(world: &World, share: usize) -> LiveHub {
    let config = GatewayConfig {
        poll_interval: POLL,
        tenant: TenantLimits {
            memory_bytes: NonZeroUsize::new(share),
            ..TenantLimits::default()
        },
        ..GatewayConfig::default()
    };
    let (store, stream) = (
        Arc::new(world.store.clone()),
        Arc::new(world.stream.clone()),
    );
    LiveHub::new(store, stream, &config)
}

/// Opens readers that take nothing, and lets steps come. Returns the most that was held.
async fn attacked(world: &mut World, hub: &LiveHub) -> (Vec<LiveReader>, usize) {
    let access = Access::tenant("default");
    let conversation = world.store.conversation(&access, "c").await;
    let conversation = conversation.unwrap().unwrap();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = hub.open(access.clone(), &conversation, Cursor::at(0));
        settle().await;
        assert!(reader.next().now_or_never().is_none(), "it has subscribed");
        readers.push(reader);
    }
    let mut most = 0;
    for _ in 0..STEPS {
        world.say(&"x".repeat(TEXT)).await;
        world.save(true).await;
        settle().await;
        most = most.max(hub.held_bytes());
    }
    (readers, most)
}

#[tokio::test(start_paused = true)]
async fn readers_that_take_nothing_hold_no_more_than_their_tenants_share() {
    let mut world = World::new(StreamOptions::default());
    let (_readers, most) = {
        let hub = hub(&world, 0);
        attacked(&mut world, &hub).await
    };
    assert!(most > 10 * SHARE, "{most} bytes without a limit");

    let mut world = World::new(StreamOptions::default());
    let hub = hub(&world, SHARE);
    let (mut readers, most) = attacked(&mut world, &hub).await;
    assert!(most < SHARE + 4 * TEXT, "{most} bytes");
    let expected: Vec<_> = (1..=world.last_sequence()).collect();
    for reader in &mut readers {
        let mut seen = Onlooker::default();
        for _ in 0..1000 {
            settle().await;
            match reader.next().now_or_never() {
                Some(next) => seen.take(&next.unwrap().frame),
                None if seen.events.len() == expected.len() => break,
                None => elapse(POLL).await,
            }
        }
        assert_eq!(seen.events, expected);
    }
    settle().await;
    assert_eq!(hub.held_bytes(), 0, "who keeps up holds nothing");
}
