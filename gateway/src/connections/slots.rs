//! Slots for connections. When every slot is taken, the connection with the longest wait for a request gives way.
//!
//! So idle or very slow clients take slots only from other idle or slow clients.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// The slots of one gateway.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    /// The slots of one address; `None` for any number.
    most_of_address: Option<usize>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number of the last wait. Numbers only rise, so the smallest number belongs to the longest wait.
    last_turn: u64,
    last_id: u64,
    /// The connections with a slot, by id.
    held: HashMap<u64, Held>,
    /// The connections that wait for a request, by the number of the wait.
    waiting: BTreeMap<u64, (u64, CancellationToken)>,
    of_address: HashMap<IpAddr, usize>,
}

#[derive(Debug, Default)]
struct Held {
    /// The number of requests during their answers.
    answers: usize,
    /// The number of the connection's wait; `None` while the gateway answers a request.
    turn: Option<u64>,
}

/// Why a connection gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// The gateway is answering a request on every connection.
    Full,
    /// The address has its full number of connections.
    Address,
}

impl Slots {
    pub(crate) fn new(most: usize, most_of_address: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_address,
            taken: Mutex::default(),
        })
    }

    /// Takes a slot for a connection from this address. The connection's wait for the first request begins.
    pub(crate) fn enter(slots: &Arc<Self>, address: IpAddr) -> Result<Slot, NoSlot> {
        let mut taken = slots.lock();
        let of_address = taken.of_address.get(&address).copied().unwrap_or_default();
        if slots.most_of_address.is_some_and(|most| of_address >= most) {
            return Err(NoSlot::Address);
        }
        if taken.held.len() >= slots.most {
            let (_turn, (id, cut)) = taken.waiting.pop_first().ok_or(NoSlot::Full)?;
            taken.held.remove(&id);
            cut.cancel();
        }
        taken.last_id += 1;
        let id = taken.last_id;
        *taken.of_address.entry(address).or_default() += 1;
        let cut = CancellationToken::new();
        taken.wait(id, &cut);
        drop(taken);
        Ok(Slot {
            slots: Arc::clone(slots),
            id,
            address,
            cut,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn wait(&mut self, id: u64, cut: &CancellationToken) {
        self.last_turn += 1;
        self.held.entry(id).or_default().turn = Some(self.last_turn);
        self.waiting.insert(self.last_turn, (id, cut.clone()));
    }

    fn begin_answer(&mut self, id: u64) {
        // A connection without its slot is about to be cut.
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        held.answers += 1;
        if let Some(turn) = held.turn.take() {
            self.waiting.remove(&turn);
        }
    }

    fn end_answer(&mut self, id: u64, cut: &CancellationToken) {
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        held.answers -= 1;
        if held.answers == 0 {
            self.wait(id, cut);
        }
    }
}

/// The slot of a connection. A drop gives the slot back.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    address: IpAddr,
    cut: CancellationToken,
}

impl Slot {
    /// Resolves when the connection has to give way.
    pub(crate) async fn lost(&self) {
        self.cut.cancelled().await;
    }

    /// Notes a request: the connection keeps its slot until the answer is dropped.
    pub(crate) fn answer(slot: &Arc<Self>) -> Answering {
        slot.slots.lock().begin_answer(slot.id);
        Answering(Arc::clone(slot))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        let turn = taken.held.remove(&self.id).and_then(|held| held.turn);
        if let Some(turn) = turn {
            taken.waiting.remove(&turn);
        }
        if let Some(count) = taken.of_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.of_address.remove(&self.address);
            }
        }
    }
}

/// A request during its answer. After the drop, the connection waits for the next request.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Slot>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.slots.lock().end_answer(self.0.id, &self.0.cut);
    }
}

/// The answer of a connection whose body has ended, while bytes of the answer wait for the socket. The HTTP library reads
/// a body to its end long before a slow client has taken the bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unsent(Arc<Mutex<Option<Answering>>>);

impl Unsent {
    /// Keeps the answer until [`Self::sent`].
    pub(super) fn keep(&self, answering: Answering) {
        // With pipelined requests, the newest answer stands for the answers before.
        let _earlier = self.lock().replace(answering);
    }

    /// Notes that the socket has taken every byte.
    pub(super) fn sent(&self) {
        let _answered = self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Answering>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn enter(slots: &Arc<Slots>, number: u8) -> Result<Arc<Slot>, NoSlot> {
        Slots::enter(slots, address(number)).map(Arc::new)
    }

    #[test]
    fn whoever_waited_longest_gives_way_and_who_is_answered_does_not() {
        let slots = Slots::new(3, None);
        let [first, second, third] = [1, 2, 3].map(|number| enter(&slots, number).unwrap());
        let answering = Slot::answer(&first);
        let fourth = enter(&slots, 4).unwrap();
        assert!(second.cut.is_cancelled());
        assert!(
            ![&first, &third, &fourth]
                .iter()
                .any(|slot| slot.cut.is_cancelled())
        );
        // The first connection asked after the arrival of the others, so its wait is the shortest.
        drop(answering);
        let _fifth = enter(&slots, 5).unwrap();
        assert!(third.cut.is_cancelled() && !first.cut.is_cancelled());
    }

    #[test]
    fn nobody_comes_in_while_all_are_answered() {
        let slots = Slots::new(2, None);
        let held = [1, 2].map(|number| enter(&slots, number).unwrap());
        let answering = held.each_ref().map(Slot::answer);
        assert_eq!(enter(&slots, 3).unwrap_err(), NoSlot::Full);
        drop(answering);
        enter(&slots, 3).unwrap();
    }

    #[test]
    fn an_address_has_its_slots_and_no_others() {
        let slots = Slots::new(10, Some(2));
        let held = [1, 1].map(|number| enter(&slots, number).unwrap());
        assert_eq!(enter(&slots, 1).unwrap_err(), NoSlot::Address);
        let _other = enter(&slots, 2).unwrap();
        drop(held);
        enter(&slots, 1).unwrap();
    }

    proptest! {
        /// The counts always equal the open connections.
        #[test]
        fn nothing_is_left_of_connections_that_are_gone(steps in proptest::collection::vec((0..4u8, 0..4u8), 0..200)) {
            let slots = Slots::new(5, Some(3));
            let mut held: Vec<(Arc<Slot>, Option<Answering>)> = Vec::new();
            for (what, number) in steps {
                let chosen = usize::from(number) % held.len().max(1);
                match what {
                    0 => held.extend(enter(&slots, number).ok().map(|slot| (slot, None))),
                    1 if !held.is_empty() => held[chosen].1 = Some(Slot::answer(&held[chosen].0)),
                    2 if !held.is_empty() => held[chosen].1 = None,
                    3 if !held.is_empty() => drop(held.remove(chosen)),
                    _ => {}
                }
                // A connection ends when it must give way.
                held.retain(|(slot, _)| !slot.cut.is_cancelled());
                let taken = slots.lock();
                prop_assert!(taken.held.len() == held.len() && held.len() <= 5);
                let answered = held.iter().filter(|(_, answering)| answering.is_some()).count();
                prop_assert_eq!(taken.waiting.len(), held.len() - answered);
                prop_assert_eq!(taken.of_address.values().sum::<usize>(), held.len());
            }
            drop(held);
            let taken = slots.lock();
            prop_assert!(taken.held.is_empty() && taken.waiting.is_empty() && taken.of_address.is_empty());
        }
    }
}
