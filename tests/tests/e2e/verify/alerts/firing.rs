//! The alerts that fire, as the query engine of Prometheus finds them (`deploy/chart-test/scraped-alerts`).

use std::{collections::BTreeMap, fs, path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::Command;

/// What the rules have for the `max_streams` of the configuration, and what the chart replaces.
const MAX_STREAMS_OF_RULES: &str = "10000";

/// An alert that fires.
#[derive(Debug, Clone)]
pub(super) struct Firing {
    pub(super) alert: String,
    /// The first one in which it fires.
    pub(super) minute: usize,
    labels: BTreeMap<String, String>,
}

impl Firing {
    fn read(line: &str) -> Self {
        let fires: Value = serde_json::from_str(line).unwrap();
        let labels = fires["labels"].as_object().unwrap().iter();
        Self {
            alert: fires["alert"].as_str().unwrap().to_owned(),
            minute: usize::try_from(fires["minute"].as_u64().unwrap()).unwrap(),
            labels: labels
                .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                .collect(),
        }
    }

    /// Checks a label of the alert.
    pub(super) fn has(&self, label: &str, value: &str) -> &Self {
        let found = self.labels.get(label).map(String::as_str);
        assert_eq!(found, Some(value), "{label} of {self:?}");
        self
    }
}

/// Evaluates the chart's rules for this `max_streams` on what was read of processes. Its files are in the directory.
pub(super) async fn firing(
    directory: &Path,
    max_streams: usize,
    scrapes: &[String],
) -> Vec<Firing> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let program = root.join("target/scraped-alerts");
    assert!(
        program.is_file(),
        "{} is missing: run `make scraped-alerts`",
        program.display()
    );
    let rules = fs::read_to_string(root.join("deploy/chart/files/rules.yaml")).unwrap();
    let rules = rules.replace(MAX_STREAMS_OF_RULES, &max_streams.to_string());
    let [rules_file, scrapes_file] =
        ["rules.yaml", "scrapes.jsonl"].map(|name| directory.join(name));
    fs::write(&rules_file, rules).unwrap();
    fs::write(&scrapes_file, scrapes.join("\n")).unwrap();
    let mut command = Command::new(program);
    command
        .args([rules_file, scrapes_file])
        .stderr(Stdio::inherit());
    let output = command.output().await.unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(Firing::read).collect()
}
