//! A Redis that goes away and comes back under those who follow cancels.

use std::time::Duration;

use everturn_stream::{CancelNews, FollowedCancels, RedisStream};
use everturn_test_servers::redis::Redis;
use tokio::{sync::mpsc, time::timeout};

use super::{patient, stream_with};

/// Announces a cancel again and again until it arrives.
async fn arrives(stream: &RedisStream, cancels: &mut mpsc::Receiver<String>, id: &str) {
    let arrived = async {
        loop {
            // While Redis is away, an announcement is lost.
            let _ = stream.announce_cancel(id).await;
            let received = timeout(Duration::from_millis(50), cancels.recv()).await;
            if received.is_ok_and(|received| received.as_deref() == Some(id)) {
                return;
            }
        }
    };
    timeout(Duration::from_mins(1), arrived)
        .await
        .unwrap_or_else(|_| panic!("the cancel of {id} does not arrive"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_hears_of_cancels_again_when_redis_is_back() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    let FollowedCancels {
        announced: mut cancels,
        mut hearing,
    } = stream.follow_cancels();
    hearing.wait_for(|hearing| hearing.arrives).await.unwrap();
    arrives(&stream, &mut cancels, "run_1").await;
    let before = hearing.borrow().losses;
    server.kill().await;
    hearing.wait_for(|hearing| !hearing.arrives).await.unwrap();
    assert!(stream.announce_cancel("run_lost").await.is_err());
    server.start_again().await;
    hearing.wait_for(|hearing| hearing.arrives).await.unwrap();
    assert!(
        hearing.borrow().losses > before,
        "the follower knows of the lost announcement"
    );
    arrives(&stream, &mut cancels, "run_2").await;
    server.command("CLIENT KILL TYPE pubsub").await.unwrap();
    arrives(&stream, &mut cancels, "run_3").await;
}

#[tokio::test]
async fn a_connection_ends_with_the_one_who_follows() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    let mut cancels = stream.follow_cancels().announced;
    arrives(&stream, &mut cancels, "run_1").await;
    let subscribers = async || server.info("pubsub_channels").await;
    assert_eq!(subscribers().await, 1);
    drop(cancels);
    while subscribers().await > 0 {
        tokio::task::yield_now().await;
    }
}
