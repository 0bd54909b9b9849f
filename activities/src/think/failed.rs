//! The reason for a call without a reply.

use everturn_models::ModelError;
use temporalio_common::ActivityError;

/// The reason for a call without a reply.
pub(super) enum Failed {
    /// The model has failed, and another model may be asked.
    Model(ModelError),
    /// The failure has another cause than the model.
    Other(ActivityError),
}

impl From<ActivityError> for Failed {
    fn from(error: ActivityError) -> Self {
        Self::Other(error)
    }
}
