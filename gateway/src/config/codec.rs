//! The codec server of a gateway, for the Temporal UI and CLI.

use everturn_codec::Codec;

/// The codec, and the tenants of operators.
#[derive(Debug, Clone)]
pub struct CodecServer {
    /// The key that decrypts the payloads of workers and gateways.
    pub codec: Codec,
    /// The tenants of operators. Their callers may decode the payloads of every tenant and of the installation. Callers
    /// of another tenant may decode only the payloads of their tenant. Default: an empty list.
    pub operator_tenants: Vec<String>,
}
