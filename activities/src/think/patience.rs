//! The wait for a provider that refuses the calls of a step. A refused call is not billed, so waiting costs nothing.
//! No I/O is here.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, SystemTime},
};

use everturn_proto::words::FailureCode;
use everturn_store::Refusals;

/// The longest pause, as a multiple of the first pause.
const LONGEST: u32 = 30;

/// How long a step waits for its provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// The longest time from the first refused call to the last call.
    pub(super) limit: Duration,
    /// The pause after the first refused call.
    pub(super) first_pause: Duration,
}

/// The wait after a refused call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// The number of refused calls so far.
    count: u32,
    /// The time from the first refusal to the next call.
    waited: Duration,
    /// The pause before the next call.
    pub(super) pause: Duration,
}

impl Patience {
    /// Returns the wait after a refused call that took `took`; `None` when the patience is over, or ends before the time
    /// that the provider asks to wait. `before` are the earlier refusals of the step.
    pub(super) fn after(
        &self,
        before: Option<&Refusals>,
        retry_after: Option<Duration>,
        took: Duration,
    ) -> Option<Wait> {
        let count = before.map_or(0, |before| before.count);
        let waited = before.map(|before| Duration::from_millis(before.waited_ms) + took);
        let waited = waited.unwrap_or_default();
        let left = self.limit.saturating_sub(waited);
        let asked = retry_after.unwrap_or_default();
        if left.is_zero() || asked > left {
            return None;
        }
        let pause = self.pause(count).min(left).max(asked);
        Some(Wait {
            count: count.saturating_add(1),
            waited: waited + pause,
            pause,
        })
    }

    /// Returns the pause after `count` earlier refusals: from a half to the whole of a time that doubles, so that the
    /// calls of many turns do not come back at one moment.
    fn pause(&self, count: u32) -> Duration {
        let doubled = 1_u32.checked_shl(count).unwrap_or(LONGEST).min(LONGEST);
        let half = self.first_pause * doubled / 2;
        let random = RandomState::new().hash_one(count) % 1000;
        half + half * u32::try_from(random).unwrap_or_default() / 1000
    }
}

impl Wait {
    /// Returns the refusals for the step's next claim. `calls` is the number of the step's counted calls, the refused
    /// call included.
    pub(super) fn noted(&self, generation: u32, code: &FailureCode, calls: u32) -> Refusals {
        Refusals {
            count: self.count,
            waited_ms: milliseconds(self.waited),
            generation,
            code: code.as_str().to_owned(),
            attempt: calls.saturating_add(self.count),
            next_try_at: (SystemTime::now() + self.pause).into(),
        }
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        limit: Duration::from_mins(10),
        first_pause: Duration::from_secs(1),
    };

    fn refused(wait: &Wait) -> Refusals {
        wait.noted(1, &FailureCode::LlmOverloaded, 1)
    }

    #[test]
    fn pauses_grow_and_end_with_the_patience() {
        let (mut before, mut pauses) = (None, Vec::new());
        while let Some(wait) = PATIENCE.after(before.as_ref(), None, Duration::ZERO) {
            before = Some(refused(&wait));
            pauses.push(wait.pause);
        }
        for (pause, longest) in pauses.iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
            let longest = Duration::from_secs(longest);
            assert!((longest / 2..=longest).contains(pause), "{pauses:?}");
        }
        let waited: Duration = pauses.iter().sum();
        let rest = PATIENCE.limit.saturating_sub(waited);
        assert!(rest < Duration::from_millis(100), "{pauses:?}");
        assert!((20..=60).contains(&pauses.len()), "{pauses:?}");
    }

    #[test]
    fn a_provider_is_not_called_before_it_wants() {
        let asked = Duration::from_secs(7);
        let wait = PATIENCE.after(None, Some(asked), Duration::ZERO).unwrap();
        assert_eq!(wait.pause, asked);
        let refused = refused(&wait);
        assert_eq!(
            (refused.count, refused.waited_ms, refused.attempt),
            (1, 7000, 2)
        );
        let too_long = Some(PATIENCE.limit);
        let took = Duration::from_secs(1);
        assert_eq!(PATIENCE.after(Some(&refused), too_long, took), None);
    }

    #[test]
    fn a_call_that_is_refused_late_takes_patience_too() {
        let first = PATIENCE.after(None, None, PATIENCE.limit).unwrap();
        assert!(first.pause <= Duration::from_secs(1));
        let before = refused(&first);
        assert_eq!(PATIENCE.after(Some(&before), None, PATIENCE.limit), None);
        let none = Patience {
            limit: Duration::ZERO,
            ..PATIENCE
        };
        assert_eq!(none.after(None, None, Duration::ZERO), None);
    }
}
