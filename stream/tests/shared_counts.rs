//! Counts that gateways share through Redis.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{sync::Arc, time::Duration};

use everturn_stream::{
    Counted, Exceeded, Held, Holder, RedisStream, RedisStreamOptions, SharedCounts, Spent,
};
use everturn_test_servers::redis::Redis;
use futures::future::join_all;

const LIFETIME: Duration = Duration::from_mins(1);

/// Connections of so many gateways to one Redis, which ends with the first value.
async fn gateways<const COUNT: usize>() -> (Redis, [RedisStream; COUNT]) {
    let redis = Redis::start().await;
    let options = RedisStreamOptions {
        // Tests share 2 cores with compilers.
        command_timeout: Duration::from_secs(10),
        ..RedisStreamOptions::default()
    };
    let gateways =
        [(); COUNT].map(|()| RedisStream::connect(&redis.url(), options.clone()).unwrap());
    (redis, gateways)
}

fn tenant(id: &str) -> Counted {
    Counted {
        tenant_id: id.to_owned(),
        owner_id: None,
    }
}

fn owner(tenant: &str, id: &str) -> Counted {
    Counted {
        tenant_id: tenant.to_owned(),
        owner_id: Some(id.to_owned()),
    }
}

fn holder(id: &str, version: u64) -> Holder<'_> {
    Holder {
        id,
        version,
        lifetime: LIFETIME,
    }
}

fn held(of: &Counted, open: u32, most: Option<u32>) -> Held {
    let of = of.clone();
    Held { of, open, most }
}

#[tokio::test]
async fn requests_of_all_gateways_add_up_for_each_tenant_and_owner() {
    let (_redis, [one, other]) = gateways().await;
    let spent = |of: Counted, seconds| Spent {
        of,
        refill: Duration::from_secs(seconds),
    };
    let both = [spent(tenant("a"), 100), spent(owner("a", "ann"), 50)];
    one.spend(&both).await.unwrap();
    let left = other.spend(&both).await.unwrap();
    // Seconds, because time passes meanwhile: it gives back what it should.
    let is = |left: Duration, seconds: u64| left.as_secs().abs_diff(seconds) < 10;
    assert!(is(left[0], 200) && is(left[1], 100), "{left:?}");
    let others = [spent(owner("a", "bob"), 1), spent(tenant("b"), 1)];
    let left = one.spend(&others).await.unwrap();
    assert!(left.iter().all(|left| is(*left, 1)));
    // An id that looks like an owner of another tenant is no such thing.
    let left = one.spend(&[spent(tenant("a}:requests:ann"), 1)]).await;
    assert!(is(left.unwrap()[0], 1));
}

#[tokio::test]
async fn installations_that_share_a_redis_do_not_count_together() {
    let redis = Redis::start().await;
    for installation in ["one", "other"] {
        let options = RedisStreamOptions {
            installation: installation.to_owned(),
            command_timeout: Duration::from_secs(10),
            ..RedisStreamOptions::default()
        };
        let gateway = RedisStream::connect(&redis.url(), options).unwrap();
        let held = [held(&tenant("a"), 1, Some(1))];
        let told = gateway.hold(holder(installation, 1), &held);
        assert_eq!(told.await.unwrap(), None);
    }
}

#[tokio::test]
async fn all_gateways_together_open_no_more_streams_than_may_be() {
    let (_redis, [one, other]) = gateways().await;
    let (a, ann) = (tenant("a"), owner("a", "ann"));
    let open = async |gateway: &RedisStream, id, version, of_tenant, of_owner| {
        let held = [held(&a, of_tenant, Some(3)), held(&ann, of_owner, Some(2))];
        gateway.hold(holder(id, version), &held).await.unwrap()
    };
    assert_eq!(open(&one, "one", 1, 1, 1).await, None);
    assert_eq!(open(&other, "other", 1, 1, 1).await, None);
    let of_owner = Exceeded { index: 1, open: 3 };
    assert_eq!(open(&one, "one", 2, 2, 2).await, Some(of_owner));
    let bob = [held(&a, 2, Some(3))];
    assert_eq!(
        other.hold(holder("other", 2), &bob).await.unwrap(),
        None,
        "nothing of a refusal is kept"
    );
    let more = other
        .hold(holder("other", 3), &[held(&a, 3, Some(3))])
        .await;
    assert_eq!(more.unwrap(), Some(Exceeded { index: 0, open: 4 }));
    // The first gateway closes its stream. What it said before comes late, and changes nothing.
    let closed = [held(&a, 0, None), held(&ann, 0, None)];
    assert_eq!(one.hold(holder("one", 4), &closed).await.unwrap(), None);
    let late = [held(&a, 1, None), held(&ann, 1, None)];
    assert_eq!(one.hold(holder("one", 3), &late).await.unwrap(), None);
    assert_eq!(open(&other, "other", 4, 3, 2).await, None);
}

#[tokio::test]
async fn however_many_ask_at_once_no_more_get_a_stream() {
    let (_redis, gateways) = gateways::<8>().await;
    let gateways = gateways.map(Arc::new);
    let ids: Vec<_> = (0..8).map(|number| format!("gateway {number}")).collect();
    let asks = gateways.iter().zip(&ids).map(async |(gateway, id)| {
        let held = [held(&tenant("a"), 1, Some(3))];
        gateway.hold(holder(id, 1), &held).await.unwrap()
    });
    let refused = join_all(asks).await.iter().flatten().count();
    assert_eq!(refused, 5);
}

#[tokio::test]
async fn streams_of_a_gateway_that_tells_nothing_more_count_no_longer() {
    let (_redis, [dead, other]) = gateways().await;
    let short = Holder {
        lifetime: Duration::from_millis(1),
        ..holder("dead", 1)
    };
    let all = |version| (holder("other", version), [held(&tenant("a"), 1, Some(1))]);
    assert_eq!(
        dead.hold(short, &[held(&tenant("a"), 1, Some(1))])
            .await
            .unwrap(),
        None
    );
    let mut version = 0;
    loop {
        version += 1;
        let (holder, held) = all(version);
        if other.hold(holder, &held).await.unwrap().is_none() {
            break;
        }
        assert!(version < 10_000, "it counts for ever");
    }
}
