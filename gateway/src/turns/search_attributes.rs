//! Registers the search attributes of turns in the engine, before the first turn.

use everturn_proto::words::search_attribute;
use temporalio_client::{
    Client,
    tonic::{Code, Request, Status},
};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType, operatorservice::v1::AddSearchAttributesRequest,
};

/// The error of a search attribute's registration, with the engine's answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot register search attribute {name}: {status}")]
pub struct RegisterError {
    /// The name of the search attribute.
    pub name: &'static str,
    /// The engine's answer. The status tells whether a retry helps.
    pub status: Status,
}

/// Registers the search attributes of turns. Registered attributes stay unchanged.
///
/// # Errors
///
/// The engine is away, or refuses.
pub async fn register_search_attributes(client: &Client) -> Result<(), RegisterError> {
    for name in search_attribute::ALL {
        let request = AddSearchAttributesRequest {
            search_attributes: [(name.to_owned(), IndexedValueType::Keyword as i32)].into(),
            namespace: client.options().namespace.clone(),
        };
        let added = client
            .connection()
            .operator_service()
            .add_search_attributes(Request::new(request))
            .await;
        match added {
            Ok(_) => tracing::info!(name, "registered a search attribute"),
            Err(status) if status.code() == Code::AlreadyExists => {}
            // A cluster may refuse the registration to its clients. The cluster's operator then registers the
            // attributes (`everturn migrate`), or the first turn fails with a clear error.
            Err(status) if status.code() == Code::PermissionDenied => {
                tracing::warn!(
                    name,
                    "Temporal does not allow the gateway to register a search attribute; an operator must"
                );
            }
            Err(status) => return Err(RegisterError { name, status }),
        }
    }
    Ok(())
}
