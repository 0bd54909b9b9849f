//! Cancels that are announced: everybody who follows hears of them, and nobody holds up the others.

use std::time::Duration;

use everturn_stream::{CancelNews, StreamOptions, UNREAD_CANCELS};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::Backend;

/// Follows, and waits until announcements arrive.
async fn following(stream: &impl CancelNews) -> mpsc::Receiver<String> {
    let mut cancels = stream.follow_cancels().announced;
    let arrived = async {
        loop {
            stream.announce_cancel("first").await.unwrap();
            let received = timeout(Duration::from_millis(50), cancels.recv()).await;
            if received.is_ok() {
                return;
            }
        }
    };
    timeout(Duration::from_mins(1), arrived)
        .await
        .expect("no announcement arrives");
    cancels
}

/// The next announcement that was not for finding out whether they arrive.
async fn next(cancels: &mut mpsc::Receiver<String>) -> String {
    let next = async {
        loop {
            let received = cancels.recv().await.expect("it ends with its receiver");
            if received != "first" {
                return received;
            }
        }
    };
    timeout(Duration::from_mins(1), next)
        .await
        .expect("nothing is announced")
}

pub async fn everybody_hears_of_a_cancel(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    stream.announce_cancel("run_before").await.unwrap();
    let mut one = following(&*stream).await;
    let mut two = following(&*stream).await;
    for id in ["run_1", "run_2"] {
        stream.announce_cancel(id).await.unwrap();
    }
    for cancels in [&mut one, &mut two] {
        assert_eq!(next(cancels).await, "run_1");
        assert_eq!(next(cancels).await, "run_2");
    }
    drop(one);
    stream.announce_cancel("run_3").await.unwrap();
    assert_eq!(next(&mut two).await, "run_3");
}

pub async fn who_takes_no_cancels_holds_up_nobody(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let slow = following(&*stream).await;
    let mut quick = following(&*stream).await;
    for number in 0..=UNREAD_CANCELS {
        let id = format!("run_{number}");
        stream.announce_cancel(&id).await.unwrap();
        assert_eq!(next(&mut quick).await, id);
    }
    while slow.len() < UNREAD_CANCELS {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(slow.len(), slow.max_capacity(), "the rest is lost");
}
