//! The table `[gateway]`: how it is written, and what it may hold.

use std::time::Duration;

use everturn_gateway::GatewayConfig;
use serde::Deserialize;
use toml::Spanned;

use super::check::{Checker, HOUR, SECOND};

/// Short enough for a test that makes an hour pass in half a minute.
const MIN: Duration = Duration::from_millis(10);
/// Some hundred deltas. With less, a burst would cut readers that are quick.
const MIN_BUFFER: u32 = 64 * 1024;

/// A gateway as `[gateway]` sets it.
#[derive(Debug, Clone, Default)]
pub struct Gateway {
    /// Its limits. Those that other tables set have their defaults here.
    pub limits: GatewayConfig,
    /// `poll_interval`, when it is set; what it is otherwise depends on the stream.
    pub poll_interval: Option<Duration>,
}

/// The table as written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Table {
    heartbeat: Option<Spanned<String>>,
    retry_min: Option<Spanned<String>>,
    retry_max: Option<Spanned<String>>,
    reader_buffer: Option<Spanned<u32>>,
    max_streams: Option<Spanned<u32>>,
    linger: Option<Spanned<String>>,
    poll_interval: Option<Spanned<String>>,
    stall_timeout: Option<Spanned<String>>,
    drain: Option<Spanned<String>>,
    shutdown_grace: Option<Spanned<String>>,
}

impl Table {
    pub(super) fn check(&self, checker: &mut Checker<'_>) -> Gateway {
        let default = GatewayConfig::default();
        let retry_min = checker.duration(
            "retry_min",
            self.retry_min.as_ref(),
            *default.retry.start(),
            MIN..=HOUR,
        );
        // Whoever sets only the lower end, and above the default's upper one, wants no range.
        let retry_max = retry_min.max(*default.retry.end());
        let retry_max = checker.duration(
            "retry_max",
            self.retry_max.as_ref(),
            retry_max,
            retry_min..=HOUR,
        );
        let mut duration = |key, value: &Option<Spanned<String>>, default, from| {
            checker.duration(key, value.as_ref(), default, from..=HOUR)
        };
        let mut limits = GatewayConfig {
            retry: retry_min..=retry_max,
            heartbeat: duration("heartbeat", &self.heartbeat, default.heartbeat, MIN),
            linger: duration("linger", &self.linger, default.linger, Duration::ZERO),
            stall_timeout: duration(
                "stall_timeout",
                &self.stall_timeout,
                default.stall_timeout,
                MIN,
            ),
            drain: duration("drain", &self.drain, default.drain, Duration::ZERO),
            shutdown_grace: duration(
                "shutdown_grace",
                &self.shutdown_grace,
                default.shutdown_grace,
                Duration::ZERO,
            ),
            ..default
        };
        let poll_interval = duration("poll_interval", &self.poll_interval, SECOND, MIN);
        let mut number = |key, value: &Option<Spanned<u32>>, default, range| {
            let number = value
                .as_ref()
                .map(|_| checker.number(key, value.as_ref(), 0, range));
            number.map_or(default, |number| usize::try_from(number).unwrap_or(default))
        };
        limits.max_streams = number(
            "max_streams",
            &self.max_streams,
            limits.max_streams,
            1..=1_000_000,
        );
        limits.reader_buffer = number(
            "reader_buffer",
            &self.reader_buffer,
            limits.reader_buffer,
            MIN_BUFFER..=1024 * 1024 * 1024,
        );
        Gateway {
            limits,
            poll_interval: self.poll_interval.as_ref().map(|_| poll_interval),
        }
    }
}
