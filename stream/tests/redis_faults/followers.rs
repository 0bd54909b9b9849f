//! The subscription that all followers of a process share.

use std::time::Duration;

use everturn_stream::{Item, RedisStreamOptions, StreamReader, StreamWriter};
use everturn_test_servers::redis::Redis;
use tokio::time::sleep;

use super::{patient, stream, stream_with};
use crate::support::{key, next, piece, publish};

#[tokio::test]
async fn a_message_that_went_missing_cuts_the_follower() {
    let server = Redis::start().await;
    let stream = stream_with(&server, patient());
    let text = key("run", 0);
    publish(&stream, piece(&text, 1, 0, "a")).await;
    let mut following = stream.follow(&"c".into()).await.unwrap();
    // As if one had been published that never came.
    server
        .command("HINCRBY everturn:3:{c}:open #number 1")
        .await
        .unwrap();
    publish(&stream, piece(&text, 1, 1, "b")).await;
    assert_eq!(next(&mut following.items).await, None);
    let mut following = stream.follow(&"c".into()).await.unwrap();
    assert_eq!(following.open[0].text, "ab");
    // Somebody else's message on the channel.
    server
        .command("PUBLISH everturn:3:{c} hello")
        .await
        .unwrap();
    assert_eq!(next(&mut following.items).await, None);
}

#[tokio::test]
async fn one_subscriber_connection_serves_all_followers_of_a_process() {
    let server = Redis::start().await;
    let options = || RedisStreamOptions {
        sweep_interval: Duration::from_millis(50),
        ..patient()
    };
    let gateways = [0, 1, 2].map(|_| stream_with(&server, options()));
    let mut followings = Vec::new();
    for gateway in &gateways {
        for number in 0..40 {
            followings.push(
                gateway
                    .follow(&format!("c{}", number % 20).into())
                    .await
                    .unwrap(),
            );
        }
    }
    let worker = stream(&server);
    for number in 0..20 {
        worker
            .publish(
                &format!("c{number}").into(),
                piece(&key("run", 0), 1, 0, "hello"),
            )
            .await
            .unwrap();
    }
    for following in &mut followings {
        assert!(
            matches!(next(&mut following.items).await, Some(Item::Start(text)) if text.text == "hello")
        );
    }
    let connections = server
        .command("CLIENT LIST TYPE pubsub")
        .await
        .unwrap()
        .lines()
        .filter(|line| line.contains(" sub=20 "))
        .count();
    assert_eq!(connections, gateways.len());
    followings.truncate(1);
    while server.command("PUBSUB CHANNELS *").await.unwrap() != "*1" {
        sleep(Duration::from_millis(20)).await;
    }
    // Whoever comes back is subscribed again.
    let mut back = gateways[0].follow(&"c7".into()).await.unwrap();
    worker
        .publish(&"c7".into(), piece(&key("run", 0), 1, 5, "!"))
        .await
        .unwrap();
    assert!(matches!(next(&mut back.items).await, Some(Item::Delta(_))));
    drop((followings, back, gateways));
    while server
        .command("CLIENT LIST TYPE pubsub")
        .await
        .unwrap()
        .contains("sub=")
    {
        sleep(Duration::from_millis(20)).await;
    }
}
