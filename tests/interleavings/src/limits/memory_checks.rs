//! Memory of a tenant: callers that wait, and the account of the tenant.

use std::{num::NonZeroUsize, sync::Arc};

use shuttle::{
    future::{block_on, spawn},
    thread,
};

use super::memory::{Account, Memory};
use crate::{
    config::{GatewayConfig, TenantLimits},
    orders::in_many_orders,
};

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

/// A caller gets memory as soon as the tenant gives memory back.
pub fn freed_memory_reaches_the_caller_that_waits() {
    in_many_orders(|| {
        let account = memory(1000, 100).account("a");
        let held = account.hold(100);
        let waits = Arc::clone(&account);
        let waits = spawn(async move { waits.room(40).await });
        drop(held);
        drop(block_on(waits).unwrap());
        assert!(account.try_room(100).is_some(), "bytes are left over");
    });
}

/// Two callers get memory, one after another, when the memory is enough for both.
pub fn freed_memory_reaches_every_caller_that_waits() {
    in_many_orders(|| {
        let account = memory(1000, 100).account("a");
        let held = account.hold(100);
        let waits = [1, 1].map(|bytes| {
            let account = Arc::clone(&account);
            spawn(async move { account.room(bytes).await })
        });
        drop(held);
        let rooms = waits.map(|waits| block_on(waits).unwrap());
        drop(rooms);
    });
}

/// A cancelled caller does not keep the news of memory from the next caller.
pub fn a_cancelled_caller_holds_nobody_up() {
    in_many_orders(|| {
        let account = memory(1000, 100).account("a");
        let held = account.hold(100);
        let waits = [1, 1].map(|bytes| {
            let account = Arc::clone(&account);
            spawn(async move { drop(account.room(bytes).await) })
        });
        let end = thread::spawn(move || drop(held));
        waits[0].abort();
        let [_cancelled, waits] = waits;
        block_on(waits).unwrap();
        end.join().unwrap();
    });
}

/// However tenants take memory and give memory back, the sums are zero at the end. A sum that is too large makes the
/// share of a tenant too small.
pub fn the_sums_are_zero_at_the_end() {
    in_many_orders(|| {
        let memory = memory(100, 100);
        let [a, b] = ["a", "b"].map(|tenant| memory.account(tenant));
        let takes = |account: &Arc<Account>| {
            let account = Arc::clone(account);
            thread::spawn(move || {
                let held = account.hold(30);
                let more = account.try_room(40);
                drop(held);
                drop(more);
            })
        };
        for thread in [takes(&a), takes(&a), takes(&b)] {
            thread.join().unwrap();
        }
        assert_eq!(memory.held(), 0);
        let _held = [a.hold(60), b.hold(45)];
        assert!(a.is_over() && !b.is_over(), "a holder is left over");
    });
}

/// While somebody has the account of a tenant, everybody gets the same account.
pub fn a_tenant_has_one_account() {
    in_many_orders(|| {
        let memory = memory(100, 100);
        let takes = || {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                for _ in 0..2 {
                    let account = memory.account("a");
                    let again = memory.account("a");
                    assert!(Arc::ptr_eq(&account, &again), "two accounts");
                }
            })
        };
        for thread in [takes(), takes(), takes()] {
            thread.join().unwrap();
        }
    });
}
