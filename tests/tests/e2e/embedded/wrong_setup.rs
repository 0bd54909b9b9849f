//! Workers and gateways whose surroundings are wrong: they wait for what may heal, end at what does not, and say in one
//! line what is wrong.

use std::{fs, sync::Arc};

use everturn_tests::{
    model::{Model, Reply},
    stack::{Process, Stack},
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::health::Probes;

/// The roles, as command lines.
pub(crate) const ROLES: [&[&str]; 2] = [&["worker"], &["gateway", "--listen", "127.0.0.1:0"]];

pub(crate) async fn stack() -> Stack {
    Stack::new(Model::start(|_| Reply::text("unused")).await).await
}

#[tokio::test]
async fn a_wrong_configuration_is_named_with_its_line() {
    let stack = stack().await;
    stack.configure("[worker]\nmax_concurrent_activties = 5\n");
    for role in ROLES {
        let said = stack.refused(role, &[]).await;
        for words in ["everturn.toml:", "max_concurrent_activties"] {
            assert!(said.contains(words), "{words} of {said}");
        }
    }
}

#[tokio::test]
async fn a_temporal_that_comes_later_is_found() {
    let mut stack = stack().await;
    let temporal = stack.move_to_own_temporal().await;
    temporal.stop().await;
    let (of_worker, of_gateway) = (Probes::free(), Probes::free());
    let _worker = of_worker.spawn(&stack, ROLES[0], &[]);
    let _gateway = of_gateway.spawn(&stack, ROLES[1], &[]);
    for probes in [&of_worker, &of_gateway] {
        probes.waits_for("Temporal").await;
    }
    temporal.start_empty().await;
    for probes in [&of_worker, &of_gateway] {
        probes.says("/readyz", 200).await;
    }
}

/// A server with TLS whose certificate has expired. Returns its port, and the certificate as PEM.
async fn expired() -> (u16, String) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let _refused = acceptor.accept(connection).await;
        }
    });
    (port, certificate.pem())
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_named() {
    let stack = stack().await;
    let (port, certificate) = expired().await;
    let authority = stack.path("authority.pem");
    fs::write(&authority, certificate).unwrap();
    let address = format!("localhost:{port}");
    let environment = [
        ("TEMPORAL_ADDRESS", address.as_str()),
        ("TEMPORAL_TLS", "true"),
        (
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
            authority.to_str().unwrap(),
        ),
    ];
    let spawn = |role: &[&str]| -> Process { stack.spawn(role, role[0], &environment) };
    let _processes = ROLES.map(spawn);
    for log in ["worker", "gateway"] {
        // It may be renewed, so they wait.
        stack.logged(log, "waiting for Temporal").await;
        stack.logged(log, "certificate expired").await;
    }
}
