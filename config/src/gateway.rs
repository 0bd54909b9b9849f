//! `[gateway]`: limits of streams and connections, and how a gateway stops.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use everturn_gateway::{
    GatewayConfig,
    config::{ConnectionLimits, TemporalUi},
};
use ipnet::IpNet;
use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR, SECOND};

/// The shortest duration. It allows a test in which an hour passes in half a minute.
const SHORTEST: Duration = Duration::from_millis(10);
/// The smallest buffer has room for some hundred deltas. With a smaller buffer, a burst would disconnect even fast
/// readers.
const MIN_READER_BUFFER: usize = 64 * 1024;
const MAX_READER_BUFFER: usize = 1024 * 1024 * 1024;
const MAX_STREAMS: usize = 1_000_000;
/// The HTTP library refuses a smaller limit on a request's head.
const MIN_HEADER_BYTES: usize = 8 * 1024;
const MAX_HEADER_BYTES: usize = 1024 * 1024;
const MAX_RATE: u32 = 1_000_000;
const MAX_BODY_RATE: u32 = 1024 * 1024 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GatewayTable {
    heartbeat: Option<Spanned<String>>,
    retry_min: Option<Spanned<String>>,
    retry_max: Option<Spanned<String>>,
    reader_buffer: Option<Spanned<usize>>,
    max_streams: Option<Spanned<usize>>,
    max_connections: Option<Spanned<usize>>,
    max_connections_per_address: Option<Spanned<usize>>,
    max_header_bytes: Option<Spanned<usize>>,
    header_timeout: Option<Spanned<String>>,
    body_timeout: Option<Spanned<String>>,
    body_bytes_per_second: Option<Spanned<u32>>,
    trusted_proxies: Option<Vec<Spanned<String>>>,
    unknown_keys_per_second: Option<Spanned<u32>>,
    unknown_key_burst: Option<Spanned<u32>>,
    linger: Option<Spanned<String>>,
    poll_interval: Option<Spanned<String>>,
    stall_timeout: Option<Spanned<String>>,
    drain: Option<Spanned<String>>,
    shutdown_grace: Option<Spanned<String>>,
    temporal_ui: Option<Spanned<String>>,
}

impl GatewayTable {
    /// Returns the gateway's configuration with this table's values, and defaults for the rest.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> GatewayConfig {
        let default = GatewayConfig::default();
        let retry_min = check.duration(
            "retry_min",
            &self.retry_min,
            *default.retry.start(),
            SHORTEST..=HOUR,
        );
        // If only `retry_min` is set, and exceeds the default of `retry_max`, then `retry_max` becomes equal to
        // `retry_min`.
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
        let connections = self.connections(check, &default.connections);
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
            connections,
            ..default
        }
    }

    /// Returns the limits of connections whose caller is not yet known.
    fn connections(&self, check: &mut Checker<'_>, default: &ConnectionLimits) -> ConnectionLimits {
        let (header, body) = (&self.header_timeout, &self.body_timeout);
        let mut count = |key, value, default| check.number(key, value, default, 0..=MAX_STREAMS);
        let of_address = count(
            "max_connections_per_address",
            &self.max_connections_per_address,
            0,
        );
        let most = count("max_connections", &self.max_connections, default.most).max(1);
        let mut rate = |key, value, default, most| check.number(key, value, default, 0..=most);
        let unknown = default.unknown_keys_per_second.map_or(0, NonZeroU32::get);
        let unknown = rate(
            "unknown_keys_per_second",
            &self.unknown_keys_per_second,
            unknown,
            MAX_RATE,
        );
        let burst = default.unknown_key_burst.get();
        let burst = rate(
            "unknown_key_burst",
            &self.unknown_key_burst,
            burst,
            MAX_RATE,
        );
        let (bytes, slowest) = (&self.body_bytes_per_second, default.body_bytes_per_second);
        let bytes = rate("body_bytes_per_second", bytes, slowest, MAX_BODY_RATE);
        ConnectionLimits {
            most,
            most_of_address: (of_address > 0).then_some(of_address),
            max_header_bytes: check.number(
                "max_header_bytes",
                &self.max_header_bytes,
                default.max_header_bytes,
                MIN_HEADER_BYTES..=MAX_HEADER_BYTES,
            ),
            header_timeout: check.duration(
                "header_timeout",
                header,
                default.header_timeout,
                SECOND..=HOUR,
            ),
            body_timeout: check.duration("body_timeout", body, default.body_timeout, SECOND..=HOUR),
            body_bytes_per_second: bytes.max(1),
            trusted_proxies: self.trusted_proxies(check),
            unknown_keys_per_second: NonZeroU32::new(unknown),
            unknown_key_burst: NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN),
        }
    }

    /// Returns the addresses and networks of trusted proxies.
    fn trusted_proxies(&self, check: &mut Checker<'_>) -> Vec<IpNet> {
        let mut networks = Vec::new();
        for written in self.trusted_proxies.iter().flatten() {
            let text = written.get_ref();
            let address = || text.parse::<IpAddr>().map(IpNet::from);
            match text.parse::<IpNet>().or_else(|_no_network| address()) {
                Ok(network) => networks.push(network),
                Err(_) => check.wrong(
                    written,
                    format!(
                        "\"{text}\" is no network; write one like \"10.0.0.0/8\", or an address"
                    ),
                ),
            }
        }
        networks
    }

    /// Returns `poll_interval`, if it is set. Otherwise, the kind of stream decides the interval.
    pub(super) fn poll_interval(&self, check: &mut Checker<'_>) -> Option<Duration> {
        check.optional_duration("poll_interval", &self.poll_interval, SHORTEST..=HOUR)
    }
}

fn checked_ui(check: &mut Checker<'_>, address: &Spanned<String>) -> Option<TemporalUi> {
    TemporalUi::parse(address.get_ref())
        .map_err(|error| check.wrong(address, format!("`temporal_ui`: {error}")))
        .ok()
}
