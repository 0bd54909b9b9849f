//! `[limits]`: sizes of what a gateway takes, and what each tenant may use.

use std::num::{NonZeroU32, NonZeroUsize};

use everturn_gateway::{GatewayConfig, TenantLimits};
use everturn_proto::limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES};
use serde::Deserialize;
use toml::Spanned;

use super::checker::Checker;

const MAX_TENANT_LIMIT: u32 = 1_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    message_bytes: Option<Spanned<usize>>,
    queued_messages: Option<Spanned<u32>>,
    body_bytes: Option<Spanned<usize>>,
    requests_per_second: Option<Spanned<u32>>,
    request_burst: Option<Spanned<u32>>,
    open_streams: Option<Spanned<u32>>,
    concurrent_turns: Option<Spanned<u32>>,
}

impl LimitsTable {
    /// Sets the limits in the gateway's configuration.
    pub(super) fn check(&self, check: &mut Checker<'_>, gateway: GatewayConfig) -> GatewayConfig {
        let max_queued = u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX);
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
            tenant: self.tenant(check, &gateway.tenant),
            ..gateway
        }
    }

    fn tenant(&self, check: &mut Checker<'_>, default: &TenantLimits) -> TenantLimits {
        // A 0 in the file takes the limit away.
        let mut limit = |key, value: &Option<Spanned<u32>>, default: Option<NonZeroU32>| {
            let default = default.map_or(0, NonZeroU32::get);
            NonZeroU32::new(check.number(key, value, default, 0..=MAX_TENANT_LIMIT))
        };
        TenantLimits {
            requests_per_second: limit(
                "requests_per_second",
                &self.requests_per_second,
                default.requests_per_second,
            ),
            open_streams: limit("open_streams", &self.open_streams, default.open_streams),
            concurrent_turns: limit(
                "concurrent_turns",
                &self.concurrent_turns,
                default.concurrent_turns,
            ),
            request_burst: self.request_burst(check, default.request_burst),
        }
    }

    /// The burst, which is at least one request.
    fn request_burst(&self, check: &mut Checker<'_>, default: NonZeroU32) -> NonZeroU32 {
        let range = 1..=MAX_TENANT_LIMIT;
        let written = check.number("request_burst", &self.request_burst, default.get(), range);
        // What is not in the range is already reported as wrong.
        NonZeroU32::new(written).unwrap_or(default)
    }
}
