//! The source of a request, for the audit trail.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::http::problem::REQUEST_ID;

/// The source of a request: the client's address and the request's id.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The client's address, as far as the gateway trusts it. `None` when another server than [`serve`](crate::serve)
    /// serves the router.
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
