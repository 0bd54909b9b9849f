//! What the fence still refuses after Redis has lost everything (invariant 7, fenced deltas).

use std::time::Duration;

use everturn_stream::{
    Following, Item, Published, RedisStream, RedisStreamOptions, StreamReader, StreamWriter,
    TextKey,
};
use everturn_test_servers::redis::Redis;
use tokio::time::sleep;

use Published::{Accepted, Gap, Refused};

use super::{patient, stream_with};
use crate::support::{key, next, piece, publish, sealing};

/// A text of two generations: the first by a worker that was taken for dead and still writes (the zombie), the second
/// by the worker that took over.
struct TakenOver {
    server: Redis,
    zombie: RedisStream,
    worker: RedisStream,
    gateway: RedisStream,
    text: TextKey,
}

impl TakenOver {
    async fn begin() -> Self {
        let server = Redis::start().await;
        let [zombie, worker, gateway] = [0, 1, 2].map(|_| stream_with(&server, patient()));
        let taken_over = Self {
            server,
            zombie,
            worker,
            gateway,
            text: key("run", 0),
        };
        assert_eq!(taken_over.zombie_writes(1, 0, "old").await, Accepted);
        assert_eq!(taken_over.worker_writes(2, 0, "new").await, Accepted);
        assert_eq!(taken_over.zombie_writes(1, 3, "er").await, Refused);
        taken_over
    }

    async fn zombie_writes(&self, generation: u32, offset: usize, text: &str) -> Published {
        publish(&self.zombie, piece(&self.text, generation, offset, text)).await
    }

    async fn worker_writes(&self, generation: u32, offset: usize, text: &str) -> Published {
        publish(&self.worker, piece(&self.text, generation, offset, text)).await
    }

    async fn flush(&self) {
        self.server.command("FLUSHALL").await.unwrap();
    }

    /// The case that `redis/known.rs` names: nobody that Redis still knows of has seen generation 2. Whoever has seen it
    /// is not shown the older one, nor is who comes after.
    async fn older_generation_is_taken_until_a_process_knows_better(&self) {
        assert_eq!(
            self.zombie_writes(1, 3, "er").await,
            Gap,
            "its text is unknown"
        );
        assert_eq!(self.zombie_writes(1, 0, "older").await, Accepted);
        assert!(
            self.gateway
                .follow(&"c".into())
                .await
                .unwrap()
                .open
                .is_empty()
        );
        assert_eq!(
            self.worker_writes(1, 5, "!").await,
            Refused,
            "this process knows better"
        );
        assert_eq!(
            self.zombie_writes(1, 5, "!").await,
            Refused,
            "and has told Redis"
        );
    }

    async fn one_piece_of_the_newer_generation_is_enough(&self) {
        assert_eq!(self.worker_writes(2, 3, "er").await, Gap);
        assert_eq!(
            self.zombie_writes(1, 0, "older").await,
            Refused,
            "one piece is enough"
        );
        assert_eq!(self.worker_writes(2, 0, "newer").await, Accepted);
    }
}

/// The generation and the text of the next start that the reader is shown. Nothing else may come before it.
async fn shown(reader: &mut Following) -> (u32, String) {
    match next(&mut reader.items).await.expect("a flush cuts nobody") {
        Item::Start(text) => (text.generation, text.text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn fence_holds_after_everything_was_lost() {
    let taken_over = TakenOver::begin().await;
    let mut reader = taken_over.gateway.follow(&"c".into()).await.unwrap();

    taken_over.flush().await;
    taken_over
        .older_generation_is_taken_until_a_process_knows_better()
        .await;

    taken_over.flush().await;
    taken_over
        .one_piece_of_the_newer_generation_is_enough()
        .await;
    assert_eq!(shown(&mut reader).await, (2, "newer".to_owned()));

    let sealed = sealing("run", 0);
    taken_over
        .worker
        .announce(&"c".into(), sealed)
        .await
        .unwrap();
    taken_over.flush().await;
    assert_eq!(taken_over.worker_writes(3, 0, "sealed").await, Refused);
    assert_eq!(taken_over.zombie_writes(3, 0, "sealed").await, Refused);
}

#[tokio::test]
async fn fence_outlives_its_text() {
    let server = Redis::start().await;
    let text_ttl = Duration::from_millis(100);
    let [zombie, worker] = [0, 1].map(|_| {
        stream_with(
            &server,
            RedisStreamOptions {
                text_ttl,
                ..patient()
            },
        )
    });
    let text = key("run", 0);
    publish(&worker, piece(&text, 2, 0, "new")).await;
    sleep(text_ttl * 2).await;
    assert!(worker.follow(&"c".into()).await.unwrap().open.is_empty());
    assert_eq!(publish(&zombie, piece(&text, 1, 0, "old")).await, Refused);
}
