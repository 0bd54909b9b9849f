//! One word, one meaning: words that once had several meanings are kept out of the code, or have one home.
//!
//! Identifiers and comments outside tests are read. A name on the wire or in a library stays as its owner writes the name.

use crate::repository::{Source, files, is_test};

/// A word, the better words for its former meanings, and the paths that may use the word.
struct Word {
    of: &'static str,
    instead: &'static str,
    homes: &'static [&'static str],
}

const WORDS: [Word; 2] = [
    Word {
        of: "place",
        instead: "slot, permit, cursor, position, rank, index, address, region or placeholder",
        homes: &[],
    },
    Word {
        of: "lease",
        instead: "claim, guard or reference count; a lease is the lease of a worker process",
        homes: &[
            "activities/src/attempt.rs",
            "activities/src/pulse.rs",
            "bench/",
            "config/",
            "gateway/src/lost_workers/",
            "gateway/src/turns/",
            "proto/src/limits.rs",
            "proto/src/log_id.rs",
            "simulation/",
            "store/",
            "worker/",
            "workflows/src/calls.rs",
            // The wire name of the time of a client's claim.
            "gateway/src/http/routes/client_tool_claims.rs",
        ],
    },
];

/// Names of libraries and idioms with one of the words.
const KNOWN: [&str; 4] = [
    "in place of",
    "open_in_place",
    "seal_in_place_append_tag",
    "has no place in",
];

#[test]
fn a_word_has_one_meaning() {
    let mut wrong = Vec::new();
    for Source { path, text } in files(&[".rs"]) {
        if is_test(&path) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for Word {
                of: word,
                instead,
                homes,
            } in WORDS
            {
                let is_home = homes.iter().any(|home| path.starts_with(home));
                if !is_home && has_word(line, word) {
                    wrong.push(format!("{path}:{}: `{word}`: write {instead}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// True when an identifier or a word of the line has `word`, in one or several, as a part.
fn has_word(line: &str, word: &str) -> bool {
    let line = KNOWN
        .iter()
        .fold(line.to_owned(), |line, known| line.replace(known, ""));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.split(|c| !is_of_name(c))
        .flat_map(parts)
        .any(|part| part == word || part.strip_suffix('s') == Some(word))
}

/// The words of a name in lower case: `ListPlace` and `list_place` have `list` and `place`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_upper = true;
    for c in name.chars() {
        if c == '_' || (c.is_ascii_uppercase() && !was_upper) {
            parts.push(String::new());
        }
        was_upper = c.is_ascii_uppercase() || c == '_';
        if c != '_' {
            parts.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
    }
    parts
}

#[test]
fn words_are_found_in_names_and_comments() {
    for line in [
        "let place = 1;",
        "fn has_place() {}",
        "struct ListPlace;",
        "const REMOTE_PLACES: u32 = 1;",
        "// The places of the list.",
    ] {
        assert!(has_word(line, "place"), "{line}");
    }
    for line in [
        "text.replace(a, b);",
        "// A placeholder in place of the text.",
        "Placeholder",
    ] {
        assert!(!has_word(line, "place"), "{line}");
    }
}
