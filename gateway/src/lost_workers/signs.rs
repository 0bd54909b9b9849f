//! Decides which workers have stopped, or have given no sign of life for too long. The code is pure: its input is the leases
//! of a look.

use std::{collections::HashMap, time::Duration};

use everturn_store::{SeenLease, WorkerId};

/// The leases of the looks so far, with an entry for every lease.
#[derive(Debug, Default)]
pub(super) struct Signs {
    workers: HashMap<WorkerId, LastSign>,
}

#[derive(Debug, Clone, Copy)]
struct LastSign {
    renewals: i64,
    /// The looks since the last renewal.
    looks: u32,
}

impl Signs {
    /// Takes the leases of a look, and returns the leases that are over: ended leases that no gateway has taken yet, and
    /// leases without a renewal for as many looks as the lease lasts, with a pause of `every` between two looks. The
    /// function reads no clock, because a wrong clock would make a living worker dead.
    pub(super) fn look(&mut self, leases: Vec<SeenLease>, every: Duration) -> Vec<SeenLease> {
        let before = std::mem::take(&mut self.workers);
        let mut over = Vec::new();
        for lease in leases {
            let looks = match before.get(&lease.worker) {
                Some(last) if last.renewals == lease.renewals => last.looks + 1,
                _ => 0,
            };
            let sign = LastSign {
                renewals: lease.renewals,
                looks,
            };
            self.workers.insert(lease.worker.clone(), sign);
            let has_just_ended = lease.is_ended && lease.takes == 0;
            if has_just_ended || every * looks >= lease.duration {
                over.push(lease);
            }
        }
        over
    }

    /// Forgets earlier looks, after a time in which the gateway could not see the leases. Perhaps no worker could renew its
    /// lease either.
    pub(super) fn forget(&mut self) {
        self.workers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(500);

    fn worker(id: &str) -> WorkerId {
        WorkerId::from(id.to_owned())
    }

    /// A lease of two seconds.
    fn lease(id: &str, renewals: i64) -> SeenLease {
        SeenLease {
            worker: worker(id),
            identity: String::new(),
            duration: Duration::from_secs(2),
            renewals,
            takes: 0,
            is_ended: false,
        }
    }

    /// Looks at leases once. Returns the workers with a lease that is over.
    fn look(signs: &mut Signs, leases: &[(&str, i64)]) -> Vec<String> {
        let seen = leases.iter().map(|&(id, renewals)| lease(id, renewals));
        let over = signs.look(seen.collect(), EVERY);
        over.iter().map(|lease| lease.worker.to_string()).collect()
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_over_after_its_duration() {
        let mut signs = Signs::default();
        for number in 0..4 {
            assert_eq!(look(&mut signs, &[("dead", 7), ("lives", number)]), [""; 0]);
        }
        assert_eq!(look(&mut signs, &[("dead", 7), ("lives", 4)]), ["dead"]);
        let again = look(&mut signs, &[("dead", 7), ("lives", 5)]);
        assert_eq!(again, ["dead"], "until it is taken");
        assert_eq!(look(&mut signs, &[("dead", 8), ("lives", 6)]), [""; 0]);
    }

    #[test]
    fn one_renewal_in_its_duration_is_enough() {
        let mut signs = Signs::default();
        for number in 0..40 {
            assert_eq!(look(&mut signs, &[("slow", number / 4)]), [""; 0]);
        }
    }

    #[test]
    fn after_an_outage_of_the_database_nobody_is_dead() {
        let mut signs = Signs::default();
        for _ in 0..4 {
            look(&mut signs, &[("a", 1), ("b", 1)]);
        }
        signs.forget();
        for _ in 0..4 {
            assert_eq!(look(&mut signs, &[("a", 1), ("b", 1)]), [""; 0]);
        }
        assert_eq!(look(&mut signs, &[("a", 1), ("b", 2)]), ["a"]);
    }

    #[test]
    fn a_lease_that_was_ended_is_over_at_once_and_later_once_more() {
        let mut signs = Signs::default();
        let mut looks = |takes| {
            let ended = SeenLease {
                takes,
                is_ended: true,
                ..lease("ended", 8 + i64::from(takes))
            };
            signs.look(vec![ended], EVERY).len()
        };
        assert_eq!(looks(0), 1);
        assert_eq!([(); 5].map(|()| looks(1)), [0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_lease_that_was_removed_is_forgotten() {
        let mut signs = Signs::default();
        look(&mut signs, &[("a", 1)]);
        look(&mut signs, &[]);
        assert!(signs.workers.is_empty());
    }
}
