//! Where a request comes from, for the audit trail.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::http::problem::REQUEST_ID;

/// Where a request comes from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The address, as far as it can be believed; `None` where the router is served by something else.
    pub(crate) address: Option<IpAddr>,
    /// The id of the request, as in the header `x-request-id` and in the log.
    pub(crate) request_id: Option<String>,
}

impl Source {
    pub(crate) fn of(headers: &HeaderMap, address: Option<IpAddr>) -> Self {
        let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        Self {
            address,
            request_id: id.map(str::to_owned),
        }
    }

    pub(super) fn address_text(&self) -> Option<String> {
        self.address.map(|address| address.to_string())
    }
}
