//! Which connections are refused, and by which names they are allowed.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use temporalio_client::TlsOptions;

use super::{allowed::AllowedPlaintext, *};
use crate::cli::Cli;

/// Options of a role with this environment.
fn common(options: &[(&str, &str)]) -> Common {
    let options = options.iter().flat_map(|(name, value)| [*name, *value]);
    let command = ["everturn", "migrate"].into_iter().chain(options);
    Cli::try_parse_from(command).unwrap().common
}

/// Why a connection is refused, if it is.
fn refusal(checked: anyhow::Result<()>) -> Option<Exposed> {
    checked.err().map(|error| error.downcast().unwrap())
}

#[test]
fn only_a_database_that_is_known_is_connected_to() {
    let refused = |url: &str| refusal(check_database(&common(&[("--database", url)])));
    for url in [
        "everturn.db",
        "postgres://u:p@localhost/e",
        "postgres://u:p@127.0.0.2/e?sslmode=disable",
        "postgres://u:p@[::1]:1/e",
        "postgres://u@%2Frun%2Fpostgresql/e",
        "postgres://u:p@db.example/e?sslmode=verify-full",
        "postgres://u:p@db.example/e?sslmode=verify-full&sslrootcert=/ca.pem",
    ] {
        assert_eq!(refused(url), None, "{url}");
    }
    for (url, host, sslmode) in [
        ("postgres://u:p@db.example/e", "db.example", "prefer"),
        (
            "postgres://u:p@10.0.0.1/e?sslmode=disable",
            "10.0.0.1",
            "disable",
        ),
        ("postgres://u:p@db/e?sslmode=allow", "db", "allow"),
        // The library checks no certificate then, whatever authority is named.
        (
            "postgres://u:p@db/e?sslmode=require&sslrootcert=/ca.pem",
            "db",
            "require",
        ),
        // The library takes each public authority then, and any name.
        (
            "postgres://u:p@db/e?sslmode=verify-ca&sslrootcert=/ca.pem",
            "db",
            "verify-ca",
        ),
        (
            "postgres://u:p@localhost/e?host=db.example",
            "db.example",
            "prefer",
        ),
        // What leads to this machine now may lead elsewhere tomorrow.
        (
            "postgres://u:p@localhost.example/e",
            "localhost.example",
            "prefer",
        ),
        (
            "postgres://u:p@[::ffff:127.0.0.1]/e",
            "::ffff:7f00:1",
            "prefer",
        ),
    ] {
        let exposed = refused(url).expect(url);
        let told = exposed.to_string();
        for words in [
            host,
            sslmode,
            "verify-full",
            "EVERTURN_ALLOW_PLAINTEXT=database",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        let allowed = [
            ("--database", url),
            ("--allow-plaintext", "redis, database"),
        ];
        assert_eq!(refusal(check_database(&common(&allowed))), None, "{url}");
    }
}

#[test]
fn only_a_redis_with_tls_is_connected_to() {
    let refused = |url: &str| refusal(check_redis(&common(&[("--redis", url)])));
    for url in [
        "redis://localhost",
        "redis://:p@127.0.0.1:1",
        "redis://[::1]:1",
        "rediss://:p@redis.example",
        "unix:///run/redis.sock",
    ] {
        assert_eq!(refused(url), None, "{url}");
    }
    for url in [
        "redis://:p@redis.example:1",
        "valkey://10.0.0.1",
        "redis://LOCALHOST.example",
    ] {
        let told = refused(url).expect(url).to_string();
        assert!(
            told.contains("rediss://") && told.contains("EVERTURN_ALLOW_PLAINTEXT=redis"),
            "{told}"
        );
        let allowed = [("--redis", url), ("--allow-plaintext", "redis")];
        assert_eq!(refusal(check_redis(&common(&allowed))), None, "{url}");
        let others = [("--redis", url), ("--allow-plaintext", "database,temporal")];
        assert!(refusal(check_redis(&common(&others))).is_some(), "{url}");
    }
}

#[test]
fn only_a_temporal_with_tls_is_connected_to() {
    let checked = |address: &str, has_tls: bool, allowed: &str| {
        let target: url::Url = address.parse().unwrap();
        let tls = has_tls.then(TlsOptions::default);
        let mut options = ConnectionOptions::new(target)
            .maybe_tls_options(tls)
            .build();
        let common = common(&[("--allow-plaintext", allowed)]);
        let refused = refusal(check_temporal(&common, &mut options));
        (options.target.to_string(), refused)
    };
    let loopback = "http://localhost:7233/".to_owned();
    assert_eq!(checked(&loopback, false, ""), (loopback, None));
    let (_, refused) = checked("http://temporal.example:7233", false, "database,redis");
    let told = refused.unwrap().to_string();
    assert!(
        told.contains("TEMPORAL_TLS=true") && told.contains("EVERTURN_ALLOW_PLAINTEXT=temporal"),
        "{told}"
    );
    let (_, allowed) = checked("http://temporal.example:7233", false, "temporal");
    assert_eq!(allowed, None);
    // With this scheme the SDK would speak no TLS, although it is on.
    let (target, refused) = checked("http://temporal.example:7233", true, "");
    assert_eq!(
        (target.as_str(), refused),
        ("https://temporal.example:7233/", None)
    );
}

#[test]
fn a_name_that_is_no_connection_is_told_with_those_that_are() {
    for (text, names) in [("", ""), (" ,", ""), (" redis ,temporal", "redis,temporal")] {
        assert_eq!(AllowedPlaintext::parse(text).unwrap().to_string(), names);
    }
    let told = AllowedPlaintext::parse("redis,postgres").unwrap_err();
    assert!(
        told.contains("`postgres`") && told.contains("database, redis, temporal"),
        "{told}"
    );
}
