//! `[gateway]`: streams, and the way a gateway stops.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use everturn_gateway::{GatewayConfig, config::ConnectionLimits};
use ipnet::IpNet;
use serde::Deserialize;
use toml::Spanned;

use super::checker::{Checker, HOUR, SECOND};

/// Short enough for a test that makes an hour pass in half a minute.
const SHORTEST: Duration = Duration::from_millis(10);
/// Room for some hundred deltas. With less, a burst would cut readers that are quick.
const MIN_READER_BUFFER: usize = 64 * 1024;
const MAX_READER_BUFFER: usize = 1024 * 1024 * 1024;
const MAX_STREAMS: usize = 1_000_000;
/// A head of less is refused by the library that reads it.
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
            connections,
            ..default
        }
    }

    /// What connections may take before it is known who asks.
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

    /// Addresses and networks of proxies.
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

    /// `poll_interval`, when it is set. What it is otherwise depends on the stream.
    pub(super) fn poll_interval(&self, check: &mut Checker<'_>) -> Option<Duration> {
        check.optional_duration("poll_interval", &self.poll_interval, SHORTEST..=HOUR)
    }
}
