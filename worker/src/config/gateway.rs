//! `[gateway]`: streams, and the way a gateway stops.

use std::time::Duration;

use everturn_gateway::{GatewayConfig, config::TemporalUi};
use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR};

/// Short enough for a test that makes an hour pass in half a minute.
const SHORTEST: Duration = Duration::from_millis(10);
/// Room for some hundred deltas. With less, a burst would cut readers that are quick.
const MIN_READER_BUFFER: usize = 64 * 1024;
const MAX_READER_BUFFER: usize = 1024 * 1024 * 1024;
const MAX_STREAMS: usize = 1_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GatewayTable {
    heartbeat: Option<Spanned<String>>,
    retry_min: Option<Spanned<String>>,
    retry_max: Option<Spanned<String>>,
    reader_buffer: Option<Spanned<usize>>,
    max_streams: Option<Spanned<usize>>,
    linger: Option<Spanned<String>>,
    poll_interval: Option<Spanned<String>>,
    stall_timeout: Option<Spanned<String>>,
    drain: Option<Spanned<String>>,
    shutdown_grace: Option<Spanned<String>>,
    temporal_ui: Option<Spanned<String>>,
}

impl GatewayTable {
    /// The gateway's configuration with what this table sets; the rest is as by default.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> GatewayConfig {
        let default = GatewayConfig::default();
        let retry_min = check.duration(
            "retry_min",
            &self.retry_min,
            *default.retry.start(),
            SHORTEST..=HOUR,
        );
        // When only `retry_min` is set, to more than the default of `retry_max`, both are the same.
        let retry_max = check.duration(
            "retry_max",
            &self.retry_max,
            retry_min.max(*default.retry.end()),
            retry_min..=HOUR,
        );
        let max_streams = check.number(
            "max_streams",
            &self.max_streams,
            default.max_streams,
            1..=MAX_STREAMS,
        );
        let reader_buffer = check.number(
            "reader_buffer",
            &self.reader_buffer,
            default.reader_buffer,
            MIN_READER_BUFFER..=MAX_READER_BUFFER,
        );
        let temporal_ui = self.temporal_ui.as_ref();
        let temporal_ui = temporal_ui.and_then(|address| checked_ui(check, address));
        let mut duration = |key, value: &Option<Spanned<String>>, default, from| {
            check.duration(key, value, default, from..=HOUR)
        };
        let (linger, stall, drain) = (&self.linger, &self.stall_timeout, &self.drain);
        let grace = &self.shutdown_grace;
        let none = Duration::ZERO;
        GatewayConfig {
            heartbeat: duration("heartbeat", &self.heartbeat, default.heartbeat, SHORTEST),
            linger: duration("linger", linger, default.linger, none),
            stall_timeout: duration("stall_timeout", stall, default.stall_timeout, SHORTEST),
            drain: duration("drain", drain, default.drain, none),
            shutdown_grace: duration("shutdown_grace", grace, default.shutdown_grace, none),
            retry: retry_min..=retry_max,
            max_streams,
            reader_buffer,
            temporal_ui,
            ..default
        }
    }

    /// `poll_interval`, when it is set. What it is otherwise depends on the stream.
    pub(super) fn poll_interval(&self, check: &mut Checker<'_>) -> Option<Duration> {
        check.optional_duration("poll_interval", &self.poll_interval, SHORTEST..=HOUR)
    }
}

fn checked_ui(check: &mut Checker<'_>, address: &Spanned<String>) -> Option<TemporalUi> {
    TemporalUi::parse(address.get_ref())
        .map_err(|error| check.wrong(address, format!("`temporal_ui`: {error}")))
        .ok()
}
