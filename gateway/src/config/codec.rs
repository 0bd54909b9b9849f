//! The codec server of a gateway, for the Temporal UI and CLI.

use everturn_codec::Codec;

/// The codec, and the tenants of operators.
#[derive(Debug, Clone)]
pub struct CodecServer {
    /// Decrypts payloads that workers and gateways have encrypted.
    pub codec: Codec,
    /// The tenants of operators: their callers have the payloads of all tenants decoded, and those of the installation.
    /// Callers of other tenants have only their own tenant's decoded. Default: there are none.
    pub operator_tenants: Vec<String>,
}
