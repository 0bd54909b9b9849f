//! What the documents must not leave out: the events, and a page for each error.

use everturn_gateway::problem::Code;
use everturn_proto::words::EventType;

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
    let failures = read("proto/src/words/failures.rs");
    let failures: Vec<_> = quoted(&failures).collect();
    assert!(failures.len() >= 5, "{failures:?}");
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

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.split_once("&str = \""))
        .filter_map(|(_, rest)| rest.split('"').next())
}
