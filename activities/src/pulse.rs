//! When an attempt sends a heartbeat. The code is pure: its input is the passed time, and what the attempt knows.
//!
//! Leases tell of a dead worker, and the stream tells of a cancel. So a heartbeat every minute is enough, because each
//! heartbeat is a write of the engine. An attempt sends heartbeats more often while announced cancels may be lost, and
//! when a tool has reported progress.

use std::time::Duration;

use everturn_proto::limits::{HEARTBEAT_TIMEOUT, RARE_HEARTBEAT};
use everturn_stream::Hearing;

/// The time between two looks, before the first look included: most calls end sooner. A cancel whose announcement was
/// lost with Redis waits this long.
const TICK: Duration = Duration::from_secs(10);
/// The least number of looks within an activity's heartbeat time-out, because a worker may stall for a while. A workflow
/// of the release before gives its activities 5 s.
const TICKS_A_TIMEOUT: u32 = 3;
/// The time for which a worker may stall between two heartbeats.
const STALL: Duration = HEARTBEAT_TIMEOUT.saturating_sub(RARE_HEARTBEAT);

/// What an attempt knows beside the passed time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sign {
    /// Whether announced cancels arrive.
    pub(crate) hearing: Hearing,
    /// The latest progress of the tool.
    pub(crate) progress: Option<String>,
}

/// The heartbeats of one attempt.
#[derive(Debug)]
pub(crate) struct Pulse {
    tick: Duration,
    rare: Duration,
    /// The sign of the last heartbeat.
    told: Sign,
    /// The time since the last heartbeat.
    silent: Duration,
}

impl Pulse {
    /// Begins the heartbeats of an activity with this heartbeat time-out.
    pub(crate) fn begin(timeout: Option<Duration>, sign: Sign) -> Self {
        // A zero of the engine means no time-out.
        let timeout = timeout.filter(|timeout| !timeout.is_zero());
        let tick = timeout.map_or(TICK, |timeout| TICK.min(timeout / TICKS_A_TIMEOUT));
        let rare = timeout.map_or(RARE_HEARTBEAT, |timeout| timeout.saturating_sub(STALL));
        Self {
            tick,
            rare: rare.clamp(tick, RARE_HEARTBEAT),
            told: sign,
            silent: Duration::ZERO,
        }
    }

    /// Returns the time until the next look.
    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    /// Looks after a tick. Returns the sign to send if a heartbeat is due.
    pub(crate) fn due(&mut self, sign: Sign) -> Option<&Sign> {
        self.silent += self.tick;
        let is_quiet = sign.hearing.arrives && sign == self.told;
        if is_quiet && self.silent < self.rare {
            return None;
        }
        self.silent = Duration::ZERO;
        self.told = sign;
        Some(&self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(losses: u64) -> Sign {
        Sign {
            hearing: Hearing {
                arrives: true,
                losses,
            },
            progress: None,
        }
    }

    /// Returns the times of the heartbeats within two minutes, in seconds.
    fn heartbeats(timeout: Option<u64>, sign: impl Fn(u64) -> Sign) -> Vec<u64> {
        let mut pulse = Pulse::begin(timeout.map(Duration::from_secs), sign(0));
        let (mut now, mut sent) = (Duration::ZERO, Vec::new());
        while now < Duration::from_mins(2) {
            now += pulse.tick();
            let seconds = now.as_secs();
            sent.extend(pulse.due(sign(seconds)).map(|_| seconds));
        }
        sent
    }

    #[test]
    fn heartbeats_are_rare_while_cancels_arrive() {
        let timeout = Some(HEARTBEAT_TIMEOUT.as_secs());
        assert_eq!(heartbeats(timeout, |_| hears(0)), [60, 120]);
        assert_eq!(heartbeats(Some(0), |_| hears(0)), [60, 120]);
        assert_eq!(heartbeats(None, |_| hears(0)), [60, 120]);
        let every_ten: Vec<_> = (1..=12).map(|number| number * 10).collect();
        let deaf = |_| Sign::default();
        assert_eq!(heartbeats(timeout, deaf), every_ten);
        assert_eq!(
            heartbeats(Some(30), |_| hears(0)),
            every_ten,
            "an older workflow"
        );
        let short = Pulse::begin(Some(Duration::from_secs(5)), hears(0));
        assert!(short.tick() < Duration::from_secs(2) && short.rare == short.tick());
    }

    #[test]
    fn a_loss_of_announcements_brings_a_heartbeat_soon() {
        // Redis is away from second 15 to second 35.
        let redis = |now| match now {
            0..15 => hears(0),
            15..35 => Sign::default(),
            _ => hears(1),
        };
        assert_eq!(heartbeats(Some(90), redis), [20, 30, 40, 100]);
        // The connection is lost and back between two looks.
        let flaky = |now| hears(u64::from(now > 15));
        assert_eq!(heartbeats(Some(90), flaky), [20, 80]);
    }

    #[test]
    fn progress_is_told_soon() {
        let works = |now: u64| Sign {
            progress: (now >= 25).then(|| format!("{}/3", now.min(45) / 15)),
            ..hears(0)
        };
        assert_eq!(heartbeats(Some(90), works), [30, 50, 110]);
    }
}
