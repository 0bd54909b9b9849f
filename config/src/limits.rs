//! `[limits]`: the largest requests that a gateway accepts, and what each tenant and each owner may use.

use std::num::{NonZeroU32, NonZeroUsize};

use everturn_gateway::{GatewayConfig, OwnerLimits, RequestRate, TenantLimits};
use everturn_proto::limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_MESSAGES};
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{Limit, Number, Written},
};

type Most = Limit<Number<0, MAX_LIMIT, NonZeroU32>>;
/// A burst is at least one request.
type Burst = Number<1, MAX_LIMIT, NonZeroU32>;
const MAX_LIMIT: u64 = 1_000_000;

/// With less than 16 MiB, every large response would wait until all other responses end.
type Memory = Limit<Number<{ 16 << 20 }, { 1 << 40 }, NonZeroUsize>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    message_bytes: Option<Written<Number<1, { MAX_MESSAGE_BYTES as u64 }, usize>>>,
    queued_messages: Option<Written<Number<1, { MAX_QUEUED_MESSAGES as u64 }>>>,
    body_bytes: Option<usize>,
    memory_bytes: Option<Written<Memory>>,
    tenant_memory_bytes: Option<Written<Memory>>,
    requests_per_second: Option<Written<Most>>,
    request_burst: Option<Written<Burst>>,
    open_streams: Option<Written<Most>>,
    concurrent_turns: Option<Written<Most>>,
    owner: OwnerTable,
}

/// `[limits.owner]`: the share of the tenant's limits that one owner may use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OwnerTable {
    requests_per_second: Option<Written<Most>>,
    request_burst: Option<Written<Burst>>,
    open_streams: Option<Written<Most>>,
    concurrent_turns: Option<Written<Most>>,
}

impl LimitsTable {
    /// Returns the gateway's configuration with the limits.
    pub(super) fn check(&self, check: &mut Checker<'_>, gateway: GatewayConfig) -> GatewayConfig {
        let tenant = gateway.tenant;
        GatewayConfig {
            max_message_bytes: check.value_or(&self.message_bytes, gateway.max_message_bytes),
            max_queued_messages: check.value_or(&self.queued_messages, gateway.max_queued_messages),
            // A 0 in the file means: no limit.
            body_bytes: self
                .body_bytes
                .map_or(gateway.body_bytes, NonZeroUsize::new),
            memory_bytes: check.value_or(&self.memory_bytes, gateway.memory_bytes),
            tenant: TenantLimits {
                memory_bytes: check.value_or(&self.tenant_memory_bytes, tenant.memory_bytes),
                requests: RequestRate {
                    per_second: check
                        .value_or(&self.requests_per_second, tenant.requests.per_second),
                    burst: check.value_or(&self.request_burst, tenant.requests.burst),
                },
                open_streams: check.value_or(&self.open_streams, tenant.open_streams),
                concurrent_turns: check.value_or(&self.concurrent_turns, tenant.concurrent_turns),
            },
            owner: self.owner.check(check, &gateway.owner),
            ..gateway
        }
    }
}

impl OwnerTable {
    fn check(&self, check: &mut Checker<'_>, default: &OwnerLimits) -> OwnerLimits {
        let requests = &default.requests;
        OwnerLimits {
            requests: RequestRate {
                per_second: check.value_or(&self.requests_per_second, requests.per_second),
                burst: check.value_or(&self.request_burst, requests.burst),
            },
            open_streams: check.value_or(&self.open_streams, default.open_streams),
            concurrent_turns: check.value_or(&self.concurrent_turns, default.concurrent_turns),
        }
    }
}
