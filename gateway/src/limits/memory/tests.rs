//! Tests of the accounts: sums, shares, and those who wait.

use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::config::TenantLimits;

fn memory(all: usize, of_tenant: usize) -> Arc<Memory> {
    Memory::new(&GatewayConfig {
        memory_bytes: NonZeroUsize::new(all),
        tenant: TenantLimits {
            memory_bytes: NonZeroUsize::new(of_tenant),
            ..TenantLimits::default()
        },
        ..GatewayConfig::default()
    })
}

#[test]
fn a_tenant_has_its_share_and_the_next_one_notices_nothing() {
    let memory = memory(100, 60);
    let [a, b, c] = ["a", "b", "c"].map(|tenant| memory.account(tenant));
    let first = a.try_room(60).unwrap();
    assert!(a.try_room(1).is_none(), "one tenant");
    let _second = b.try_room(40).unwrap();
    assert!(!a.is_over() && !b.is_over());
    let third = c.try_room(30).unwrap();
    assert!(a.is_over() && b.is_over() && !c.is_over(), "equal parts");
    assert!(c.try_room(10).is_none());
    drop(first);
    assert!(!b.is_over());
    drop(third);
    assert_eq!(memory.held(), 40);
}

#[test]
fn whoever_holds_nothing_gets_any_room() {
    let memory = memory(10, 10);
    let account = memory.account("a");
    let room = account.try_room(1000).unwrap();
    assert!(account.try_room(1).is_none());
    assert!(memory.account("b").try_room(1000).is_some());
    drop(room);
    assert!(account.try_room(1).is_some());
}

#[test]
fn without_a_limit_there_is_always_room() {
    let account = memory(0, 0).account("a");
    let _held = account.hold(1 << 40);
    assert!(account.try_room(1 << 40).is_some());
}

#[test]
fn an_account_is_forgotten_with_the_last_who_has_it() {
    let memory = memory(10, 10);
    let bytes = memory.account("a").counted(vec![1_u8; 5]);
    let part = bytes.slice(1..2);
    drop(bytes);
    assert_eq!((memory.held(), memory.lock().len()), (5, 1));
    drop(part);
    assert_eq!((memory.held(), memory.lock().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_gets_room_when_it_comes_free() {
    let memory = memory(100, 10);
    let account = memory.account("a");
    let held = account.hold(20);
    let (mut one, mut two) = (Box::pin(account.room(5)), Box::pin(account.room(5)));
    assert!(one.as_mut().now_or_never().is_none());
    assert!(two.as_mut().now_or_never().is_none());
    drop(held);
    let _both = tokio::join!(one, two);
    let account = memory.account("b");
    let _held = account.hold(8);
    assert!(
        timeout(Duration::from_secs(9), account.room(5))
            .await
            .is_err()
    );
    assert_eq!(account.waiting.load(Relaxed), 0, "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn what_another_tenant_gives_back_makes_the_share_larger() {
    let memory = memory(100, 100);
    let (a, b) = (memory.account("a"), memory.account("b"));
    let (_mine, theirs) = (a.hold(60), b.hold(60));
    assert!(a.has_room().now_or_never().is_none());
    drop(theirs);
    a.has_room().await;
}

proptest! {
    #[test]
    fn sums_are_right(changes in prop::collection::vec((0..4_usize, 0..3_u8, 0..50_usize), 0..200)) {
        let memory = memory(300, 100);
        let mut held: Vec<(usize, Held)> = Vec::new();
        for (tenant, change, bytes) in changes {
            let account = memory.account(&tenant.to_string());
            match change {
                0 => held.push((tenant, account.hold(bytes))),
                1 => held.extend(account.try_room(bytes).map(|room| (tenant, room))),
                _ if held.is_empty() => {}
                _ if bytes % 2 == 0 => {
                    let at = bytes % held.len();
                    held[at].1.set(bytes);
                }
                _ => drop(held.swap_remove(bytes % held.len())),
            }
            let of = |tenant: usize| -> usize {
                held.iter().filter(|(of, _)| *of == tenant).map(|(_, held)| held.bytes).sum()
            };
            let sums: Vec<_> = (0..4).map(of).collect();
            for (tenant, sum) in sums.iter().enumerate() {
                let account = memory.account(&tenant.to_string());
                prop_assert_eq!(account.held.load(Relaxed), *sum);
            }
            let holders = sums.iter().filter(|sum| **sum > 0).count();
            prop_assert_eq!(memory.holders.load(Relaxed), holders);
            prop_assert_eq!(memory.held(), sums.iter().sum::<usize>());
        }
        held.clear();
        prop_assert_eq!((memory.held(), memory.lock().len()), (0, 0));
    }
}
