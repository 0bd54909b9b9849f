//! The fields of the gateway's settings that the checked files read.

#[path = "../../../gateway/src/config/tenant.rs"]
#[allow(dead_code, unreachable_pub)]
mod tenant;

use std::num::NonZeroUsize;

pub(crate) use self::tenant::{OwnerLimits, RequestRate, TenantLimits};

/// The settings of a gateway.
#[derive(Default)]
pub(crate) struct GatewayConfig {
    /// The bytes of the tenants together.
    pub(crate) memory_bytes: Option<NonZeroUsize>,
    /// The open streams of the tenants together.
    pub(crate) max_streams: usize,
    pub(crate) tenant: TenantLimits,
    pub(crate) owner: OwnerLimits,
}
