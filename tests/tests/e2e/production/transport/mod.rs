//! What leaves a machine: nothing that somebody on the way could read or answer, unless it is allowed by name.
//!
//! - `rotation`: certificates are replaced while turns run
//! - `certificates`, `thief`, `front`, `servers`: what the tests are made of

mod certificates;
mod front;
mod rotation;
mod servers;
mod thief;

use std::fs;

use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
    wait,
};

use self::{
    certificates::{Authority, Files},
    servers::HOST,
    thief::{Plays, Thief},
};

/// The roles, as command lines.
const ROLES: [&[&str]; 2] = [&["worker"], &["gateway", "--listen", "127.0.0.1:0"]];

const PASSWORD: &str = "hunter2";

async fn stack() -> Stack {
    Stack::new(Model::start(|_| Reply::text("unused")).await).await
}

/// Starts both roles, which must refuse this address of another machine and say how it is allowed.
async fn both_refuse(stack: &Stack, variable: &str, address: &str, name: &str) {
    for role in ROLES {
        let said = stack.refused(role, &[(variable, address)]).await;
        let reason = said.trim_end().lines().last().unwrap_or_default();
        let allowed = format!("EVERTURN_ALLOW_PLAINTEXT={name}");
        assert!(reason.contains("refusing to connect"), "{said}");
        assert!(
            reason.contains(&allowed) && !said.contains(PASSWORD),
            "{said}"
        );
    }
    let mut check = stack.command(&["config", "check"], &[(variable, address)]);
    let check = check.output().await.unwrap();
    let shown = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(shown.contains(&format!("✗ {name}")), "{shown}");
}

/// **Attack:** somebody on the way to PostgreSQL says that there is no TLS, and asks for the password. The default of
/// `sslmode` gave it to them.
#[tokio::test]
async fn a_thief_on_the_way_to_the_database_is_not_given_the_password() {
    let (stack, thief) = (stack().await, Thief::start(Plays::Postgres, None).await);
    let url = format!(
        "postgres://everturn:{PASSWORD}@{}/everturn",
        thief.address()
    );
    both_refuse(&stack, "EVERTURN_DATABASE", &url, "database").await;
    assert_eq!(thief.callers(), 0);

    // Only who allows it by name is robbed.
    let environment = [
        ("EVERTURN_DATABASE", url.as_str()),
        ("EVERTURN_ALLOW_PLAINTEXT", "database"),
    ];
    let _robbed = stack.spawn(&["worker"], "worker", &environment);
    wait::until("the thief has the password", || async {
        thief.has_heard(PASSWORD).then_some(())
    })
    .await;
}

/// **Attack:** somebody on the way to PostgreSQL speaks TLS with a certificate that they have made themselves.
/// `sslmode=require` took it.
#[tokio::test]
async fn a_database_with_a_certificate_that_nobody_checks_is_refused() {
    let stack = stack().await;
    let own = Authority::new("Thief").sign("anything").server(None);
    let thief = Thief::start(Plays::Postgres, Some(own)).await;
    for mode in ["require", "verify-ca"] {
        let url = format!(
            "postgres://everturn:{PASSWORD}@{}/everturn?sslmode={mode}",
            thief.address()
        );
        both_refuse(&stack, "EVERTURN_DATABASE", &url, "database").await;
    }
    assert_eq!(thief.callers(), 0);
}

/// **Attack:** somebody on the way to Redis reads the password and the texts.
#[tokio::test]
async fn a_thief_on_the_way_to_redis_hears_nothing() {
    let (stack, thief) = (stack().await, Thief::start(Plays::Any, None).await);
    let url = format!("redis://:{PASSWORD}@{}", thief.mapped_address());
    both_refuse(&stack, "EVERTURN_REDIS", &url, "redis").await;
    assert_eq!(thief.callers(), 0);
}

/// **Attack:** somebody on the way to Temporal plays the server. An address with `http://` before it went there without
/// TLS, although TLS was on.
#[tokio::test]
async fn a_thief_on_the_way_to_temporal_hears_nothing() {
    let (stack, thief) = (stack().await, Thief::start(Plays::Any, None).await);
    both_refuse(&stack, "TEMPORAL_ADDRESS", &thief.address(), "temporal").await;
    assert_eq!(thief.callers(), 0);

    let address = format!("http://localhost:{}", thief.port);
    let environment = [
        ("TEMPORAL_ADDRESS", address.as_str()),
        ("TEMPORAL_TLS", "true"),
    ];
    let _process = stack.spawn(&["worker"], "worker", &environment);
    // The first byte of TLS. HTTP/2 without it begins with its own name.
    let heard = wait::until("somebody has called", || async {
        thief.heard().first().copied()
    })
    .await;
    assert_eq!(heard, 22);
}

/// **Attack:** somebody on the way has a certificate of another authority, or one for another name.
#[tokio::test]
async fn a_man_in_the_middle_is_told_nothing_and_is_named() {
    let stack = stack().await;
    let authority = Authority::new("Ours");
    let files = Files::in_directory(stack.directory());
    files.write(&authority, &authority.sign("client"));
    let (ca, log) = (files.authority.display(), "worker");
    let wrong = [
        Authority::new("Theirs").sign(HOST),
        authority.sign("other.example"),
    ];
    for certificate in wrong {
        let server = Some(certificate.server(None));
        let postgres = Thief::start(Plays::Postgres, server.clone()).await;
        let redis = Thief::start(Plays::Any, server.clone()).await;
        let temporal = Thief::start(Plays::Any, server).await;
        let database = format!(
            "postgres://everturn:{PASSWORD}@{HOST}:{}/e?sslmode=verify-full&sslrootcert={ca}",
            postgres.port
        );
        let url = format!(
            "rediss://:{PASSWORD}@{HOST}:{}?sslrootcert={ca}",
            redis.port
        );
        let address = format!("{HOST}:{}", temporal.port);
        let ca = ca.to_string();
        let cases = [
            (&postgres, vec![("EVERTURN_DATABASE", database.as_str())]),
            (&redis, vec![("EVERTURN_REDIS", url.as_str())]),
            (
                &temporal,
                vec![
                    ("TEMPORAL_ADDRESS", address.as_str()),
                    ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", ca.as_str()),
                ],
            ),
        ];
        for (thief, environment) in cases {
            let _removed = fs::remove_file(stack.path("worker.log"));
            let process = stack.spawn(&["worker"], log, &environment);
            stack.logged(log, "certificate").await;
            wait::until("it has called", || async {
                (thief.callers() > 0).then_some(())
            })
            .await;
            process.kill().await;
            assert_eq!(thief.heard(), b"");
        }
    }
}
