//! The words for refused payloads of Temporal.

words! {
    /// The reason why a worker refuses a payload of a workflow.
    pub enum PayloadRefusal {
        /// The worker has no key that opens the payload. Another worker may have the key.
        NoKey = "no_key",
        /// The payload is not encrypted, and `require` of `[codec]` takes no other.
        InClear = "in_clear",
        /// The payload does not have the form of an encrypted payload.
        Malformed = "malformed",
        /// The payload has the key of another tenant.
        ForeignTenant = "foreign_tenant",
    }
}

impl PayloadRefusal {
    /// Returns the reason and the remedy, for people.
    pub fn text(&self) -> &'static str {
        match self {
            Self::NoKey => {
                "The worker has no key that opens a payload. Give this worker every key of the ring of [codec] that the \
                 other processes have; the log of the worker names the key."
            }
            Self::InClear => {
                "A payload is not encrypted, and `require` of [codec] takes only encrypted payloads. Send the payload with \
                 the flags --codec-endpoint and --codec-auth of the temporal command."
            }
            Self::Malformed | Self::Unknown(_) => {
                "A payload does not have the form of Everturn's codec. Its sender must use Everturn's codec."
            }
            Self::ForeignTenant => {
                "A payload has the key of another tenant. Somebody has copied the payload from another tenant's workflow, \
                 or has sent it with the credential of another tenant."
            }
        }
    }
}
