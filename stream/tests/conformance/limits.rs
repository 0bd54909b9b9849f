//! What a stream holds no more of than it was told (invariant 10, nothing grows without a bound).

use std::time::Duration;

use everturn_stream::{Published, StreamOptions, StreamReader};

use Published::{Accepted, Gap, Refused};

use super::{Backend, reader::Reader};
use crate::support::{key, next, piece, publish};

pub async fn oversized_text_is_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    let limit = everturn_proto::limits::MAX_TEXT_BYTES;
    publish(&*stream, piece(&text, 1, 0, &"x".repeat(limit - 1))).await;
    assert_eq!(
        publish(&*stream, piece(&text, 1, limit - 1, "xx")).await,
        Refused
    );
    assert_eq!(
        publish(&*stream, piece(&text, 1, limit - 1, "x")).await,
        Accepted
    );
}

pub async fn surplus_texts_are_forgotten(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            max_open_texts: 3,
            ..StreamOptions::default()
        })
        .await;
    for number in 0..5 {
        publish(
            &*stream,
            piece(&key(&format!("run_{number}"), 0), 1, 0, "x"),
        )
        .await;
    }
    assert_eq!(stream.follow(&"c".into()).await.unwrap().open.len(), 3);
    let forgotten = key("run_0", 0);
    assert_eq!(publish(&*stream, piece(&forgotten, 1, 1, "y")).await, Gap);
}

pub async fn slow_follower_is_cut_and_others_are_not(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            follower_buffer: 4,
            ..StreamOptions::default()
        })
        .await;
    let text = key("run", 0);
    let mut slow = stream.follow(&"c".into()).await.unwrap();
    let mut quick = stream.follow(&"c".into()).await.unwrap();
    for offset in 0..10 {
        assert_eq!(
            publish(&*stream, piece(&text, 1, offset, "x")).await,
            Accepted
        );
        assert!(next(&mut quick.items).await.is_some());
    }
    let mut received = 0;
    while next(&mut slow.items).await.is_some() {
        received += 1;
    }
    assert!(received <= 4, "{received}");
    assert_eq!(
        stream.follow(&"c".into()).await.unwrap().open[0].text.len(),
        10
    );
}

pub async fn too_many_followers_are_refused(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            max_followers: 2,
            ..StreamOptions::default()
        })
        .await;
    let first = stream.follow(&"c".into()).await.unwrap();
    let _second = stream.follow(&"c".into()).await.unwrap();
    assert!(stream.follow(&"c".into()).await.is_err());
    drop(first);
    assert!(stream.follow(&"c".into()).await.is_ok());
}

pub async fn untouched_texts_expire(backend: &impl Backend) {
    // A machine with much to do may pause the test for some tenths of a second.
    let ttl = Duration::from_secs(1);
    let stream = backend
        .fresh(StreamOptions {
            ttl,
            ..StreamOptions::default()
        })
        .await;
    let (idle, busy) = (key("idle", 0), key("busy", 0));
    publish(&*stream, piece(&idle, 1, 0, "x")).await;
    for offset in 0..100 {
        publish(&*stream, piece(&busy, 1, offset, "x")).await;
        let reader = Reader::join(&*stream, "c").await;
        assert_eq!(reader.text(&busy).map(str::len), Some(offset + 1));
        if reader.text(&idle).is_none() {
            return;
        }
        tokio::time::sleep(ttl / 10).await;
    }
    panic!("the untouched text does not expire");
}
