//! What the documents must not leave out: the events, and a page for each error.

use everturn_gateway::problem::Code;
use everturn_proto::words::{EventType, FailureCode};
use everturn_telemetry::all;

use crate::repository::{files, read, root};

#[test]
fn every_event_type_has_a_row_in_the_documents() {
    let documents: Vec<_> = files(&[".md"])
        .into_iter()
        .filter(|document| document.path.starts_with("docs/"))
        .collect();
    for event_type in EventType::ALL {
        let row = format!("| `{event_type}` |");
        let has_row = |text: &str| text.lines().any(|line| line.starts_with(&row));
        assert!(
            documents.iter().any(|document| has_row(&document.text)),
            "no table of docs/ has the event {event_type}: what does it mean, and what is its data?"
        );
    }
}

#[test]
fn every_error_code_has_a_page() {
    let failures = FailureCode::ALL.iter().map(FailureCode::as_str);
    let codes = Code::ALL.iter().map(|code| code.as_str());
    for code in codes.chain(failures) {
        let page = root().join(format!("docs/errors/{code}.md"));
        assert!(
            page.is_file(),
            "{} is missing: what does {code} mean, and what is to be done?",
            page.display()
        );
    }
}

#[test]
fn the_documents_have_the_metrics_that_there_are() {
    let page = read("docs/operate/health.md");
    for metric in all() {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let row = format!("| `{}` | {}", metric.name, labels.join(", "));
        let has_row = page.lines().any(|line| line.starts_with(row.trim_end()));
        assert!(
            has_row,
            "docs/operate/health.md has no row that begins with: {row}"
        );
    }
    // Of a histogram, a query names the series.
    let is_named = |word: &str| {
        all().any(|metric| {
            let ending = word.strip_prefix(metric.name);
            ending.is_some_and(|it| ["", "_bucket", "_sum", "_count"].contains(&it))
        })
    };
    let crates = ["proto", "tools", "gateway", "worker", "session"];
    let crates = crates.map(|name| format!("everturn_{name}"));
    for file in files(&[".md", ".yaml", ".json"]) {
        let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let words = file.text.split(|it| !is_word(it));
        for word in words.filter(|word| word.starts_with("everturn_")) {
            let is_crate = crates.iter().any(|name| word == name);
            assert!(
                is_crate || is_named(word),
                "{}: there is no metric {word}",
                file.path
            );
        }
    }
}
