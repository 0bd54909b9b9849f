//! No field of a core model is about traces: the context of a trace travels beside the models.

use crate::repository::{Source, files, without_tests};

/// The models that the parts of the runtime exchange and store. The rows of traces are tables of their own.
const MODELS: [&str; 6] = [
    "proto/everturn/",
    "proto/src/",
    "workflows/src/",
    "tools/src/context.rs",
    "tools/src/tool.rs",
    "store/src/batch/",
];
/// Beginnings and ends of the names of fields about traces.
const WORDS: [&str; 6] = [
    "traceparent",
    "tracestate",
    "trace_id",
    "span_id",
    "parent_span",
    "trace_context",
];

/// Returns the name of the field or the parameter in a line of a model: of `string name = 1;` or of `name: Type,`.
fn field(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let before = line.split(['=', ':', ';']).next()?.trim();
    before.split_whitespace().last()
}

fn is_about_traces(line: &str) -> bool {
    field(line).is_some_and(|name| WORDS.iter().any(|word| name.contains(word)))
}

#[test]
fn core_models_have_no_fields_of_traces() {
    let mut wrong = Vec::new();
    let mut models = 0;
    for Source { path, text } in files(&[".rs", ".proto"]) {
        if !MODELS.iter().any(|model| path.starts_with(model)) {
            continue;
        }
        models += 1;
        let lines = without_tests(&text).lines().enumerate();
        let found = lines.filter(|(_, line)| is_about_traces(line));
        wrong.extend(found.map(|(number, line)| format!("{path}:{}: {}", number + 1, line.trim())));
    }
    assert!(models > 30, "{models} files");
    assert!(
        wrong.is_empty(),
        "send the context of a trace beside the model (proto/src/remote_call.rs), not as a field:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_field_of_traces_is_found() {
    for line in [
        "  string traceparent = 13;",
        "    pub trace_id: String,",
        "optional string parent_span_id = 4;",
    ] {
        assert!(is_about_traces(line), "{line}");
    }
    assert!(!is_about_traces("  // The traceparent = of the caller"));
    assert!(!is_about_traces("map<string, string> headers = 2;"));
}
