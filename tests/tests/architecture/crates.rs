//! Which crate may name which, and what the workflow's crate cannot name.

use std::{fs, process::Command};

use serde_json::Value;

use crate::repository::root;

/// Crates of this workspace that each crate may name (ARCHITECTURE.md, "Code map"). Tests of any crate may name
/// `test-servers`, too.
const ARROWS: [(&str, &[&str]); 23] = [
    ("proto", &[]),
    ("codec", &["proto"]),
    ("workflows", &["proto"]),
    ("store", &["proto"]),
    ("stream", &["proto"]),
    ("client", &[]),
    ("supervisor", &[]),
    ("telemetry", &[]),
    ("untrusted", &[]),
    (
        "models",
        &["proto", "store", "stream", "telemetry", "untrusted"],
    ),
    (
        "tools",
        &["proto", "store", "supervisor", "telemetry", "untrusted"],
    ),
    (
        "activities",
        &[
            "proto",
            "store",
            "stream",
            "supervisor",
            "telemetry",
            "models",
            "tools",
        ],
    ),
    (
        "gateway",
        &[
            "proto",
            "codec",
            "store",
            "stream",
            "telemetry",
            "untrusted",
            "workflows",
        ],
    ),
    (
        "config",
        &[
            "proto",
            "codec",
            "store",
            "supervisor",
            "models",
            "tools",
            "activities",
            "gateway",
        ],
    ),
    ("terminal", &["proto", "supervisor", "client"]),
    (
        "simulation",
        &["proto", "store", "stream", "gateway", "workflows"],
    ),
    (
        "worker",
        &[
            "proto",
            "codec",
            "config",
            "store",
            "stream",
            "supervisor",
            "telemetry",
            "terminal",
            "workflows",
            "models",
            "tools",
            "activities",
            "gateway",
            "client",
        ],
    ),
    ("own-tool", &["worker"]),
    ("signed-tool", &[]),
    ("test-servers", &["supervisor"]),
    // The files that the checks compile come from models, activities and gateway, and name these crates.
    ("interleavings", &["proto", "store", "stream", "telemetry"]),
    (
        "tests",
        &[
            "proto",
            "codec",
            "config",
            "store",
            "stream",
            "supervisor",
            "telemetry",
            "terminal",
            "workflows",
            "models",
            "activities",
            "gateway",
            "worker",
            "client",
            "test-servers",
        ],
    ),
    ("bench", &["client", "tests"]),
];

#[test]
fn crates_depend_only_along_the_arrows() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert_eq!(
        packages.len(),
        ARROWS.len(),
        "a new crate needs its arrows here and in ARCHITECTURE.md"
    );
    for package in packages {
        let name = package["name"]
            .as_str()
            .unwrap()
            .trim_start_matches("everturn-");
        let (_, allowed) = ARROWS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_for_tests = dependency["kind"] == "dev";
            let Some(target) = dependency["name"]
                .as_str()
                .unwrap()
                .strip_prefix("everturn-")
            else {
                continue;
            };
            assert!(
                allowed.contains(&target) || (is_for_tests && target == "test-servers"),
                "{name} must not depend on {target}"
            );
        }
    }
}

#[test]
fn the_workflow_crate_cannot_name_io() {
    let manifest = fs::read_to_string(root().join("workflows/Cargo.toml")).unwrap();
    for forbidden in [
        "tokio",
        "sqlx",
        "reqwest",
        "chrono",
        "rand",
        "uuid",
        "temporalio-sdk",
        "temporalio-client",
    ] {
        let is_named = manifest.lines().any(|line| {
            line.starts_with(&format!("{forbidden}.")) || line.starts_with(&format!("{forbidden} "))
        });
        assert!(
            !is_named,
            "workflows/ must not depend on {forbidden} (invariant 1, pure workflow)"
        );
    }
}
