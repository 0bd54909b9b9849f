//! `[gateway]`: limits of streams and connections, and how a gateway stops.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use everturn_gateway::{
    GatewayConfig,
    config::{ConnectionLimits, TemporalUi},
};
use ipnet::IpNet;
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{DAY, Form, HOUR, Limit, Number, SECOND, Time, Written},
};

/// The shortest duration is 10 ms. It allows a test in which an hour passes in half a minute.
type Wait = Time<10, HOUR>;
type WaitOrNone = Time<0, HOUR>;
/// A turn may last for days, and so may the wait for its end.
type McpWait = Time<10, { 7 * DAY }>;
/// The smallest buffer has room for some hundred deltas. With a smaller buffer, a burst would disconnect even fast
/// readers.
type ReaderBuffer = Number<{ 64 << 10 }, { 1 << 30 }, usize>;
/// A context has at most 4 MiB (`limits::MAX_CONTEXT_BYTES`), so a larger limit would never leave a message out.
type CallBytes = Number<{ 16 << 10 }, { 4 << 20 }, usize>;
/// The HTTP library refuses a smaller limit on a request's head.
type HeaderBytes = Number<{ 8 << 10 }, { 1 << 20 }, usize>;
const MAX_STREAMS: u64 = 1_000_000;
type Rate = Limit<Number<0, 1_000_000, NonZeroU32>>;
const MAX_BODY_RATE: u64 = 1 << 30;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GatewayTable {
    heartbeat: Option<Written<Wait>>,
    retry_min: Option<Written<Wait>>,
    retry_max: Option<Written<Wait>>,
    reader_buffer: Option<Written<ReaderBuffer>>,
    max_streams: Option<Written<Number<1, MAX_STREAMS, usize>>>,
    max_connections: Option<Written<Number<0, MAX_STREAMS, usize>>>,
    max_connections_per_address: Option<Written<Limit<Number<0, MAX_STREAMS, usize>>>>,
    max_header_bytes: Option<Written<HeaderBytes>>,
    header_timeout: Option<Written<Time<SECOND, HOUR>>>,
    body_timeout: Option<Written<Time<SECOND, HOUR>>>,
    body_bytes_per_second: Option<Written<Number<0, MAX_BODY_RATE>>>,
    trusted_proxies: Vec<Written<Network>>,
    refused_sign_ins_per_second: Option<Written<Rate>>,
    refused_sign_in_burst: Option<Written<Rate>>,
    linger: Option<Written<WaitOrNone>>,
    poll_interval: Option<Written<Wait>>,
    stall_timeout: Option<Written<Wait>>,
    call_bytes: Option<Written<CallBytes>>,
    mcp_wait: Option<Written<McpWait>>,
    drain: Option<Written<WaitOrNone>>,
    shutdown_grace: Option<Written<WaitOrNone>>,
    temporal_ui: Option<Written<TemporalUi>>,
}

impl GatewayTable {
    /// Returns the gateway's configuration with this table's values, and defaults for the rest.
    pub(super) fn check(&self, check: &mut Checker<'_>) -> GatewayConfig {
        let default = GatewayConfig::default();
        let retry_min = check.value_or(&self.retry_min, *default.retry.start());
        // If only `retry_min` is set, and exceeds the default of `retry_max`, then `retry_max` becomes equal to
        // `retry_min`.
        let retry_max = retry_min.max(*default.retry.end());
        let retry_max = check.value_or(&self.retry_max, retry_max);
        if let Some(written) = self.retry_max.as_ref().filter(|_| retry_max < retry_min) {
            let least = humantime::format_duration(retry_min);
            check.wrong(
                &written.at,
                format!("`retry_max` must be from {least} to 1h: at least `retry_min`"),
            );
        }
        GatewayConfig {
            heartbeat: check.value_or(&self.heartbeat, default.heartbeat),
            linger: check.value_or(&self.linger, default.linger),
            stall_timeout: check.value_or(&self.stall_timeout, default.stall_timeout),
            mcp_wait: check.value_or(&self.mcp_wait, default.mcp_wait),
            drain: check.value_or(&self.drain, default.drain),
            shutdown_grace: check.value_or(&self.shutdown_grace, default.shutdown_grace),
            retry: retry_min..=retry_max,
            max_streams: check.value_or(&self.max_streams, default.max_streams),
            reader_buffer: check.value_or(&self.reader_buffer, default.reader_buffer),
            max_call_bytes: check.value_or(&self.call_bytes, default.max_call_bytes),
            temporal_ui: check.value(&self.temporal_ui),
            connections: self.connections(check, &default.connections),
            ..default
        }
    }

    /// Returns the limits of connections whose caller is not yet known.
    fn connections(&self, check: &mut Checker<'_>, default: &ConnectionLimits) -> ConnectionLimits {
        let bytes = &self.body_bytes_per_second;
        let burst = Some(default.refused_sign_in_burst);
        let burst = check.value_or(&self.refused_sign_in_burst, burst);
        ConnectionLimits {
            most: check.value_or(&self.max_connections, default.most).max(1),
            most_of_address: check.value_or(&self.max_connections_per_address, None),
            max_header_bytes: check.value_or(&self.max_header_bytes, default.max_header_bytes),
            header_timeout: check.value_or(&self.header_timeout, default.header_timeout),
            body_timeout: check.value_or(&self.body_timeout, default.body_timeout),
            body_bytes_per_second: check.value_or(bytes, default.body_bytes_per_second).max(1),
            trusted_proxies: check.values(&self.trusted_proxies),
            refused_sign_ins_per_second: check.value_or(
                &self.refused_sign_ins_per_second,
                default.refused_sign_ins_per_second,
            ),
            refused_sign_in_burst: burst.unwrap_or(NonZeroU32::MIN),
        }
    }

    /// Returns `poll_interval`, if it is set. Otherwise, the kind of stream decides the interval.
    pub(super) fn poll_interval(&self, check: &mut Checker<'_>) -> Option<Duration> {
        check.value(&self.poll_interval)
    }
}

/// The network of a trusted proxy, or a single address.
struct Network;

impl Form for Network {
    type Toml = String;
    type Value = IpNet;

    fn read(text: String) -> Result<IpNet, String> {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse().or_else(|_no_network| address());
        network.map_err(|_| {
            format!(
                "has \"{text}\", but a network is written like \"10.0.0.0/8\", or as an address"
            )
        })
    }
}

impl Form for TemporalUi {
    type Toml = String;
    type Value = Self;

    fn read(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|error| format!("cannot be used: {error}"))
    }
}
