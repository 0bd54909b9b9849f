//! Workers and gateways whose surroundings are wrong: they wait for what may heal, end at what does not, and say in one
//! line what is wrong.

use std::{fs, sync::Arc};

use everturn_tests::{
    backends,
    model::{Model, Reply},
    stack::{Process, Stack},
    temporal::free_port,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::health::Probes;

/// The roles, as command lines.
const ROLES: [&[&str]; 2] = [&["worker"], &["gateway", "--listen", "127.0.0.1:0"]];

async fn stack() -> Stack {
    Stack::new(Model::start(|_| Reply::text("unused")).await).await
}

/// The last line, which says why a role has ended.
fn reason(said: &str) -> &str {
    said.trim_end().lines().last().unwrap_or_default()
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
async fn tables_that_are_missing_are_told_with_the_command_that_makes_them() {
    if !backends::is_production() {
        return;
    }
    let stack = stack().await;
    let postgres = stack.backends().postgres().unwrap();
    let name = format!("empty_{}", uuid::Uuid::new_v4().simple());
    postgres.create_database(&name).await;
    let empty = [("EVERTURN_DATABASE", postgres.url(&name))];
    let empty = empty
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    for role in ROLES {
        let said = stack.refused(role, &empty).await;
        assert!(reason(&said).contains("run `everturn migrate`"), "{said}");
    }
}

/// Spawns each role, and waits until it waits for the database, and has logged this.
async fn wait_for_the_database(
    stack: &Stack,
    database: &str,
    logged: &str,
) -> [(Probes, Process); 2] {
    let environment = [("EVERTURN_DATABASE", database)];
    let spawned = ROLES.map(|role| {
        let probes = Probes::free();
        let process = probes.spawn(stack, role, &environment);
        (probes, process)
    });
    for ((probes, _), role) in spawned.iter().zip(ROLES) {
        probes.waits_for("the database").await;
        stack.logged(role[0], "waiting for the database").await;
        stack.logged(role[0], logged).await;
    }
    spawned
}

#[tokio::test]
async fn a_login_that_is_refused_is_told_without_its_password() {
    let stack = stack().await;
    let Some(postgres) = stack.backends().postgres() else {
        return;
    };
    let port = postgres.port();
    let url = format!("postgres://nobody:hunter2@127.0.0.1:{port}/postgres");
    // The role may be made, or its password rotated, so they wait.
    let _waiting = wait_for_the_database(&stack, &url, "nobody").await;
    for role in ROLES {
        let log = fs::read_to_string(stack.path(&format!("{}.log", role[0]))).unwrap();
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[tokio::test]
async fn a_database_that_comes_later_is_found() {
    let stack = stack().await;
    let Some(postgres) = stack.backends().postgres() else {
        return;
    };
    let (real, later) = (postgres.port(), free_port());
    let url = stack.backends().database().unwrap();
    let url = url.replace(&format!(":{real}/"), &format!(":{later}/"));
    let waiting = wait_for_the_database(&stack, &url, "refused").await;
    let listener = TcpListener::bind(("127.0.0.1", later)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(("127.0.0.1", real)).await.unwrap();
            tokio::spawn(async move {
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    for (probes, _) in &waiting {
        probes.says("/readyz", 200).await;
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
