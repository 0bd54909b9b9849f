//! The architecture's rules as tests: arrows between crates and between rooms, module headers, file lengths.

#![allow(clippy::unwrap_used)]

mod paths;
mod rooms;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Crates of this workspace that each crate may name (ARCHITECTURE "Crates").
const ARROWS: [(&str, &[&str]); 10] = [
    ("proto", &[]),
    ("workflows", &["proto"]),
    ("store", &["proto"]),
    ("stream", &["proto"]),
    ("activities", &["proto", "store", "stream"]),
    ("gateway", &["proto", "store", "stream", "workflows"]),
    (
        "worker",
        &[
            "proto",
            "store",
            "stream",
            "workflows",
            "activities",
            "gateway",
        ],
    ),
    ("own-tool", &["worker"]),
    (
        "tests",
        &[
            "proto",
            "store",
            "stream",
            "workflows",
            "activities",
            "gateway",
            "worker",
        ],
    ),
    ("bench", &["tests"]),
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
            let is_dev = dependency["kind"] == "dev";
            let Some(target) = dependency["name"]
                .as_str()
                .unwrap()
                .strip_prefix("everturn-")
            else {
                continue;
            };
            assert!(
                is_dev || allowed.contains(&target),
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
            "workflows/ must not depend on {forbidden} (invariant 1)"
        );
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | ".tools" | "node_modules")
        {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_module_says_what_lives_in_it_and_fits_a_reader() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    assert!(files.len() > 50);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("//! "),
            "{} has no //! header",
            file.display()
        );
        let lines = text.lines().count();
        assert!(
            lines <= 500,
            "{} has {lines} lines; split it by what it is about",
            file.display()
        );
    }
}

#[test]
fn every_error_code_has_a_page() {
    let words = fs::read_to_string(root().join("proto/src/words.rs")).unwrap();
    let failures = words.split("pub mod failure").nth(1).unwrap();
    let codes = quoted(failures).chain(
        everturn_gateway::problem::Code::ALL
            .iter()
            .map(|code| code.as_str()),
    );
    let mut count = 0;
    for code in codes {
        let page = root().join(format!("docs/errors/{code}.md"));
        assert!(
            page.is_file(),
            "{} is missing: what does {code} mean, and what is to be done?",
            page.display()
        );
        count += 1;
    }
    assert!(count >= 15, "{count} codes found");
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.split_once("&str = \""))
        .filter_map(|(_, rest)| rest.split('"').next())
}
