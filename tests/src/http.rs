//! The HTTP client of tests.

/// Makes a client that keeps no connection. Tests kill servers and start them again on the same port, so a request never
/// goes over a connection that ended with its server.
pub(crate) fn client() -> reqwest::Client {
    // HTTP clients panic without a TLS backend, even for http.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().pool_max_idle_per_host(0);
    client.build().unwrap()
}
