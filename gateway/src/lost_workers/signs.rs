//! Decides which workers have stopped, or have given no sign of life for too long. The code is pure: its input is the leases
//! of a look, and the time that the look took.
//!
//! A worker that does not renew its lease is dead, or cannot write to the database. A gateway tells the difference by two
//! facts. First, the gateway's own calls: after a slow call, earlier looks prove nothing, because the renewals of every
//! worker may be slow, too. Second, the other workers: one worker dies alone, but a failure between the workers and the
//! database, or a machine without CPU time, silences most workers at once. A restart of every activity would then pay
//! each LLM call again and help nobody. So the gateway waits longer, but not for ever, because all workers may really be
//! dead.

use std::{collections::HashMap, time::Duration};

use everturn_store::{SeenLease, WorkerId};

/// The time that a lease lasts longer while most workers are silent. With the default lease of 2 s, the only worker of an
/// installation is found dead 6 s after its last sign, which leaves the restart 4 s of the documented 10 s.
const MOST_ARE_SILENT: Duration = Duration::from_secs(4);
/// A call is slow when it takes longer than this fraction of a lease, which is the time between two renewals.
const SLOW: u32 = 4;
/// A worker counts as silent, for the comparison with the other workers, after this fraction of its lease. Workers that
/// fall silent together renewed their leases at different times, so their leases end in different looks.
const SILENT: u32 = 2;

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

/// Returns true for a slow call to the store, because a slow store may delay the worker's renewals.
pub(super) fn is_slow(took: Duration, lease: &SeenLease) -> bool {
    took * SLOW > lease.duration
}

impl Signs {
    /// Takes the leases of a look, and returns the leases that are over: ended leases that no gateway has taken yet, and
    /// leases without a renewal for as many looks as the lease lasts, with a pause of `every` between two looks. `took` is
    /// the time of the look's call. The function reads no clock, because a wrong clock would make a living worker dead.
    pub(super) fn look(
        &mut self,
        leases: Vec<SeenLease>,
        took: Duration,
        every: Duration,
    ) -> Vec<SeenLease> {
        let before = std::mem::take(&mut self.workers);
        for lease in &leases {
            let looks = match before.get(&lease.worker) {
                Some(last) if last.renewals == lease.renewals && !is_slow(took, lease) => {
                    last.looks + 1
                }
                Some(_) | None => 0,
            };
            let sign = LastSign {
                renewals: lease.renewals,
                looks,
            };
            self.workers.insert(lease.worker.clone(), sign);
        }
        let longer = if self.are_most_silent(&leases, every) {
            MOST_ARE_SILENT
        } else {
            Duration::ZERO
        };
        let is_over = |lease: &SeenLease| {
            let has_just_ended = lease.is_ended && lease.takes == 0;
            let longer = if is_in_fleet(lease) {
                longer
            } else {
                Duration::ZERO
            };
            has_just_ended || self.silence(lease, every) >= lease.duration + longer
        };
        leases.into_iter().filter(is_over).collect()
    }

    /// Returns the time of the looks since the worker's last renewal.
    fn silence(&self, lease: &SeenLease, every: Duration) -> Duration {
        let last = self.workers.get(&lease.worker);
        every * last.map_or(0, |last| last.looks)
    }

    /// Returns true if more than half of the workers are silent. One of two workers may be dead, but the only worker is
    /// most of its fleet.
    fn are_most_silent(&self, leases: &[SeenLease], every: Duration) -> bool {
        let fleet = leases.iter().filter(|lease| is_in_fleet(lease));
        let (mut silent, mut all) = (0, 0);
        for lease in fleet {
            all += 1;
            silent += u32::from(self.silence(lease, every) * SILENT >= lease.duration);
        }
        silent * 2 > all
    }

    /// Forgets earlier looks, after a time in which the gateway saw no leases. Perhaps no worker could renew its
    /// lease either.
    pub(super) fn forget(&mut self) {
        self.workers.clear();
    }
}

/// Returns true for a worker without a stop and without a death.
fn is_in_fleet(lease: &SeenLease) -> bool {
    !lease.is_ended && lease.takes == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(500);
    const QUICK: Duration = Duration::from_millis(5);
    /// Longer than the time between two renewals of a lease of two seconds.
    const LATE: Duration = Duration::from_millis(501);

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
        look_in(QUICK, signs, leases)
    }

    fn look_in(took: Duration, signs: &mut Signs, leases: &[(&str, i64)]) -> Vec<String> {
        let seen = leases.iter().map(|&(id, renewals)| lease(id, renewals));
        let over = signs.look(seen.collect(), took, EVERY);
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
    fn the_only_worker_is_dead_after_a_longer_silence() {
        let mut signs = Signs::default();
        for _ in 0..12 {
            assert_eq!(look(&mut signs, &[("dead", 1)]), [""; 0]);
        }
        assert_eq!(look(&mut signs, &[("dead", 1)]), ["dead"], "after 6 s");
    }

    #[test]
    fn a_second_worker_ends_the_longer_wait_for_the_first() {
        let mut signs = Signs::default();
        for _ in 0..6 {
            assert_eq!(look(&mut signs, &[("dead", 1)]), [""; 0]);
        }
        assert_eq!(look(&mut signs, &[("dead", 1), ("new", 1)]), ["dead"]);
    }

    #[test]
    fn workers_that_fall_silent_together_are_given_more_time() {
        let mut signs = Signs::default();
        // The workers renewed their leases at different times, and one worker still lives.
        for number in 0..12_i64 {
            let (b, c) = (number.min(1), number.min(2));
            let leases = [("a", 0), ("b", b), ("c", c), ("lives", number)];
            assert_eq!(look(&mut signs, &leases), [""; 0], "look {number}");
        }
        // Two workers renew their leases again, and the third worker stays silent alone.
        let leases = [("a", 1), ("b", 2), ("c", 2), ("lives", 12)];
        assert_eq!(look(&mut signs, &leases), ["c"]);
    }

    #[test]
    fn half_of_the_workers_may_die_at_once() {
        let mut signs = Signs::default();
        let mut over = Vec::new();
        for number in 0..5 {
            let leases = [("a", 1), ("b", 1), ("c", number), ("d", number)];
            over = look(&mut signs, &leases);
        }
        assert_eq!(over, ["a", "b"]);
    }

    #[test]
    fn workers_that_have_stopped_or_are_known_as_dead_say_nothing_about_the_others() {
        let mut signs = Signs::default();
        let ended = SeenLease {
            takes: 1,
            is_ended: true,
            ..lease("ended", 1)
        };
        let buried = SeenLease {
            takes: 1,
            ..lease("buried", 1)
        };
        let mut over = Vec::new();
        for number in 0..5 {
            let fleet = [lease("dead", 1), lease("lives", number)];
            let leases = [ended.clone(), buried.clone()].into_iter().chain(fleet);
            over = signs.look(leases.collect(), QUICK, EVERY);
        }
        let over: Vec<_> = over.iter().map(|lease| lease.worker.as_str()).collect();
        assert_eq!(over, ["ended", "buried", "dead"]);
    }

    #[test]
    fn a_slow_look_begins_the_count_again() {
        let mut signs = Signs::default();
        let mut leases = [("dead", 1_i64), ("lives", 0)];
        for number in 0..20 {
            leases[1].1 = number;
            let took = if number % 4 == 3 { LATE } else { QUICK };
            assert_eq!(look_in(took, &mut signs, &leases), [""; 0]);
        }
        for number in 20..23 {
            leases[1].1 = number;
            assert_eq!(look(&mut signs, &leases), [""; 0]);
        }
        leases[1].1 = 23;
        assert_eq!(look(&mut signs, &leases), ["dead"]);
    }

    #[test]
    fn a_longer_lease_bears_a_slower_look() {
        let long = SeenLease {
            duration: Duration::from_secs(4),
            ..lease("long", 1)
        };
        assert!(is_slow(LATE, &lease("short", 1)) && !is_slow(LATE, &long));
        assert!(is_slow(LATE * 2, &long));
    }

    #[test]
    fn after_an_outage_of_the_database_nobody_is_dead() {
        let mut signs = Signs::default();
        for _ in 0..4 {
            look(&mut signs, &[("a", 1), ("b", 1)]);
        }
        signs.forget();
        for number in 0..4 {
            assert_eq!(look(&mut signs, &[("a", 1), ("b", number)]), [""; 0]);
        }
        assert_eq!(look(&mut signs, &[("a", 1), ("b", 4)]), ["a"]);
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
            signs.look(vec![ended], QUICK, EVERY).len()
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
