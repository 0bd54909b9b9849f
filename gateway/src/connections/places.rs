//! Places for connections. When all are taken, the connection that has waited longest for a request gives way.
//!
//! So whoever opens connections and asks nothing, or asks very slowly, takes places only from others of that kind.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// The places of one gateway.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// `None`: any number.
    most_of_address: Option<usize>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Each turn to wait has a number of its own, so the smallest one waits longest.
    last_turn: u64,
    last_id: u64,
    /// The connections that have a place.
    held: HashMap<u64, Held>,
    /// The connections that wait for a request.
    waiting: BTreeMap<u64, (u64, CancellationToken)>,
    of_address: HashMap<IpAddr, usize>,
}

#[derive(Debug, Default)]
struct Held {
    /// Requests that are being answered.
    answers: usize,
    /// The turn in which the connection waits; `None` while a request is being answered.
    turn: Option<u64>,
}

/// Why a connection gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All connections are being answered.
    Full,
    /// The address has as many as it may.
    Address,
}

impl Places {
    pub(crate) fn new(most: usize, most_of_address: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_address,
            taken: Mutex::default(),
        })
    }

    /// Takes a place for a connection from this address. It waits for its first request from now on.
    pub(crate) fn enter(places: &Arc<Self>, address: IpAddr) -> Result<Place, NoPlace> {
        let mut taken = places.lock();
        let of_address = taken.of_address.get(&address).copied().unwrap_or_default();
        if places
            .most_of_address
            .is_some_and(|most| of_address >= most)
        {
            return Err(NoPlace::Address);
        }
        if taken.held.len() >= places.most {
            let (_turn, (id, cut)) = taken.waiting.pop_first().ok_or(NoPlace::Full)?;
            taken.held.remove(&id);
            cut.cancel();
        }
        taken.last_id += 1;
        let id = taken.last_id;
        *taken.of_address.entry(address).or_default() += 1;
        let cut = CancellationToken::new();
        taken.wait(id, &cut);
        drop(taken);
        Ok(Place {
            places: Arc::clone(places),
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
        // Who has lost the place is about to be cut.
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

/// The place of a connection. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
    address: IpAddr,
    cut: CancellationToken,
}

impl Place {
    /// Resolves when the connection has to give way.
    pub(crate) async fn lost(&self) {
        self.cut.cancelled().await;
    }

    /// A request has come: the connection keeps its place until the answer is dropped.
    pub(crate) fn answer(place: &Arc<Self>) -> Answering {
        place.places.lock().begin_answer(place.id);
        Answering(Arc::clone(place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
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

/// A request that is being answered. When it is dropped, its connection waits for the next one.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Place>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.places.lock().end_answer(self.0.id, &self.0.cut);
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

    fn enter(places: &Arc<Places>, number: u8) -> Result<Arc<Place>, NoPlace> {
        Places::enter(places, address(number)).map(Arc::new)
    }

    #[test]
    fn whoever_waited_longest_gives_way_and_who_is_answered_does_not() {
        let places = Places::new(3, None);
        let [first, second, third] = [1, 2, 3].map(|number| enter(&places, number).unwrap());
        let answering = Place::answer(&first);
        let fourth = enter(&places, 4).unwrap();
        assert!(second.cut.is_cancelled());
        assert!(
            ![&first, &third, &fourth]
                .iter()
                .any(|place| place.cut.is_cancelled())
        );
        // It has asked after the others came, so it waits for less time than they do.
        drop(answering);
        let _fifth = enter(&places, 5).unwrap();
        assert!(third.cut.is_cancelled() && !first.cut.is_cancelled());
    }

    #[test]
    fn nobody_comes_in_while_all_are_answered() {
        let places = Places::new(2, None);
        let held = [1, 2].map(|number| enter(&places, number).unwrap());
        let answering = held.each_ref().map(Place::answer);
        assert_eq!(enter(&places, 3).unwrap_err(), NoPlace::Full);
        drop(answering);
        enter(&places, 3).unwrap();
    }

    #[test]
    fn an_address_has_its_places_and_no_others() {
        let places = Places::new(10, Some(2));
        let held = [1, 1].map(|number| enter(&places, number).unwrap());
        assert_eq!(enter(&places, 1).unwrap_err(), NoPlace::Address);
        let _other = enter(&places, 2).unwrap();
        drop(held);
        enter(&places, 1).unwrap();
    }

    proptest! {
        /// Whatever happens, the counts are those of the connections that are there.
        #[test]
        fn nothing_is_left_of_connections_that_are_gone(steps in proptest::collection::vec((0..4u8, 0..4u8), 0..200)) {
            let places = Places::new(5, Some(3));
            let mut held: Vec<(Arc<Place>, Option<Answering>)> = Vec::new();
            for (what, number) in steps {
                let chosen = usize::from(number) % held.len().max(1);
                match what {
                    0 => held.extend(enter(&places, number).ok().map(|place| (place, None))),
                    1 if !held.is_empty() => held[chosen].1 = Some(Place::answer(&held[chosen].0)),
                    2 if !held.is_empty() => held[chosen].1 = None,
                    3 if !held.is_empty() => drop(held.remove(chosen)),
                    _ => {}
                }
                // Connections that must give way end.
                held.retain(|(place, _)| !place.cut.is_cancelled());
                let taken = places.lock();
                prop_assert!(taken.held.len() == held.len() && held.len() <= 5);
                let answered = held.iter().filter(|(_, answering)| answering.is_some()).count();
                prop_assert_eq!(taken.waiting.len(), held.len() - answered);
                prop_assert_eq!(taken.of_address.values().sum::<usize>(), held.len());
            }
            drop(held);
            let taken = places.lock();
            prop_assert!(taken.held.is_empty() && taken.waiting.is_empty() && taken.of_address.is_empty());
        }
    }
}
