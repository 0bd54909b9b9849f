//! `[limits]`: the largest requests that a gateway accepts, and what each tenant and each owner may use.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    ops::RangeInclusive,
};

use everturn_gateway::{GatewayConfig, OwnerLimits, RequestRate, TenantLimits};
use everturn_proto::limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES};
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

const MAX_LIMIT: u32 = 1_000_000;

/// With less than 16 MiB, every large response would wait until all other responses end.
const MEMORY: RangeInclusive<usize> = 16 * 1024 * 1024..=1 << 40;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    message_bytes: Option<Spanned<usize>>,
    queued_messages: Option<Spanned<u32>>,
    body_bytes: Option<Spanned<usize>>,
    memory_bytes: Option<Spanned<usize>>,
    tenant_memory_bytes: Option<Spanned<usize>>,
    requests_per_second: Option<Spanned<u32>>,
    request_burst: Option<Spanned<u32>>,
    open_streams: Option<Spanned<u32>>,
    concurrent_turns: Option<Spanned<u32>>,
    owner: OwnerTable,
}

/// `[limits.owner]`: the share of the tenant's limits that one owner may use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OwnerTable {
    requests_per_second: Option<Spanned<u32>>,
    request_burst: Option<Spanned<u32>>,
    open_streams: Option<Spanned<u32>>,
    concurrent_turns: Option<Spanned<u32>>,
}

impl LimitsTable {
    /// Returns the gateway's configuration with the limits.
    pub(super) fn check(&self, check: &mut Checker<'_>, gateway: GatewayConfig) -> GatewayConfig {
        let max_queued = u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX);
        let rate = [
            self.requests_per_second.as_ref(),
            self.request_burst.as_ref(),
        ];
        GatewayConfig {
            max_message_bytes: check.number(
                "message_bytes",
                &self.message_bytes,
                gateway.max_message_bytes,
                1..=MAX_MESSAGE_BYTES,
            ),
            max_queued_messages: check.number(
                "queued_messages",
                &self.queued_messages,
                gateway.max_queued_messages,
                1..=max_queued,
            ),
            body_bytes: match &self.body_bytes {
                Some(written) => NonZeroUsize::new(*written.get_ref()),
                None => gateway.body_bytes,
            },
            memory_bytes: memory(
                "memory_bytes",
                check,
                self.memory_bytes.as_ref(),
                gateway.memory_bytes,
            ),
            tenant: TenantLimits {
                memory_bytes: memory(
                    "tenant_memory_bytes",
                    check,
                    self.tenant_memory_bytes.as_ref(),
                    gateway.tenant.memory_bytes,
                ),
                requests: request_rate(check, rate, gateway.tenant.requests),
                open_streams: most(
                    "open_streams",
                    check,
                    self.open_streams.as_ref(),
                    gateway.tenant.open_streams,
                ),
                concurrent_turns: most(
                    "concurrent_turns",
                    check,
                    self.concurrent_turns.as_ref(),
                    gateway.tenant.concurrent_turns,
                ),
            },
            owner: self.owner.check(check, &gateway.owner),
            ..gateway
        }
    }
}

impl OwnerTable {
    fn check(&self, check: &mut Checker<'_>, default: &OwnerLimits) -> OwnerLimits {
        let rate = [
            self.requests_per_second.as_ref(),
            self.request_burst.as_ref(),
        ];
        OwnerLimits {
            requests: request_rate(check, rate, default.requests),
            open_streams: most(
                "open_streams",
                check,
                self.open_streams.as_ref(),
                default.open_streams,
            ),
            concurrent_turns: most(
                "concurrent_turns",
                check,
                self.concurrent_turns.as_ref(),
                default.concurrent_turns,
            ),
        }
    }
}

/// Returns a limit. A 0 in the file means: no limit.
fn most(
    key: &str,
    check: &mut Checker<'_>,
    written: Option<&Spanned<u32>>,
    default: Option<NonZeroU32>,
) -> Option<NonZeroU32> {
    let default = default.map_or(0, NonZeroU32::get);
    NonZeroU32::new(check.number(key, written, default, 0..=MAX_LIMIT))
}

/// Returns a limit of memory. A 0 in the file means: no limit.
fn memory(
    key: &str,
    check: &mut Checker<'_>,
    written: Option<&Spanned<usize>>,
    default: Option<NonZeroUsize>,
) -> Option<NonZeroUsize> {
    match written {
        None => default,
        Some(written) if *written.get_ref() == 0 => None,
        written => NonZeroUsize::new(check.number(key, written, 0, MEMORY)),
    }
}

/// Returns the rate and its burst. The burst is at least one request.
fn request_rate(
    check: &mut Checker<'_>,
    [per_second, burst]: [Option<&Spanned<u32>>; 2],
    default: RequestRate,
) -> RequestRate {
    let written = check.number("request_burst", burst, default.burst.get(), 1..=MAX_LIMIT);
    RequestRate {
        per_second: most("requests_per_second", check, per_second, default.per_second),
        // `check` has already reported a value outside the range.
        burst: NonZeroU32::new(written).unwrap_or(default.burst),
    }
}
