//! How plainly comments, documents and texts for users are written: pointing words are counted, the words that stand for
//! a noun instead of naming it.
//!
//! Half of the readers learned English as a second language. "It holds nothing that anybody said" is short and grammatical,
//! and nobody can guess its subject. CONTRIBUTING.md, "How we write", says how to write instead.

use std::collections::BTreeMap;

use crate::{
    literals::literals,
    repository::{Source, files, is_test, read},
};

/// The most pointing words in 100 words. Comments of well-kept Rust projects have 5 to 7.
const MAX_PER_100: f64 = 7.0;
/// The most heavy sentences in 100 sentences. In a heavy sentence, a quarter of the words are pointing words.
const MAX_HEAVY_PER_100: f64 = 2.0;
/// Sentences with fewer words are not measured: "See above." says little of how a text is written.
const MIN_WORDS: usize = 6;

const POINTING: &[&str] = &[
    "it", "its", "that", "this", "these", "those", "they", "them", "their", "one", "ones", "what",
    "which", "whose", "who", "whoever", "whatever", "so", "such", "there", "then", "else", "other",
    "others", "none", "all", "nothing", "somebody", "anybody", "nobody", "same", "both", "each",
];

#[derive(Debug, Default, Clone, PartialEq)]
struct Measure {
    sentences: u32,
    words: u32,
    pointing: u32,
    heavy: u32,
}

impl Measure {
    fn add(&mut self, sentence: &Sentence) {
        self.sentences += 1;
        self.words += sentence.words;
        self.pointing += sentence.pointing;
        self.heavy += u32::from(sentence.is_heavy());
    }

    fn per_100(&self) -> f64 {
        100.0 * f64::from(self.pointing) / f64::from(self.words.max(1))
    }

    fn heavy_per_100(&self) -> f64 {
        100.0 * f64::from(self.heavy) / f64::from(self.sentences.max(1))
    }

    fn is_plain(&self) -> bool {
        self.per_100() <= MAX_PER_100 && self.heavy_per_100() <= MAX_HEAVY_PER_100
    }
}

/// A sentence of at least [`MIN_WORDS`] words.
#[derive(Debug)]
struct Sentence {
    /// The line in which the paragraph of the sentence begins.
    line: usize,
    text: String,
    words: u32,
    pointing: u32,
}

impl Sentence {
    fn is_heavy(&self) -> bool {
        self.pointing * 4 >= self.words
    }
}

/// The sentences of a part of the repository: their measure, and the heavy ones with their places.
#[derive(Debug, Default)]
struct Part {
    measure: Measure,
    heavy: Vec<String>,
}

impl Part {
    fn add(&mut self, path: &str, paragraphs: &[(usize, String)]) {
        for sentence in sentences(paragraphs) {
            self.measure.add(&sentence);
            if sentence.is_heavy() {
                let Sentence { line, text, .. } = sentence;
                self.heavy.push(format!("{path}:{line} {text}"));
            }
        }
    }
}

/// Fails with the heavy sentences of each part over the limits.
fn assert_plain(parts: &BTreeMap<String, Part>) {
    let not_plain: Vec<_> = parts
        .iter()
        .filter(|(_, part)| !part.measure.is_plain())
        .map(|(name, Part { measure, heavy })| {
            let (pointing, share) = (measure.per_100(), measure.heavy_per_100());
            format!(
                "{name}: {pointing:.1} pointing words per 100 words, {share:.1} % heavy sentences: {heavy:#?}"
            )
        })
        .collect();
    assert!(
        not_plain.is_empty(),
        "more than {MAX_PER_100} pointing words per 100 words, or {MAX_HEAVY_PER_100} % heavy sentences; name the \
         thing instead of pointing at it:\n{}",
        not_plain.join("\n")
    );
}

#[test]
fn comments_name_their_subjects() {
    let mut folders = BTreeMap::<String, Part>::new();
    for Source { path, text } in files(&[".rs"]) {
        if !is_test(&path) {
            let part = folders.entry(folder(&path)).or_default();
            part.add(&path, &comments(&text));
        }
    }
    for Source { path, text } in files(&[".sql"]) {
        let part = folders.entry("SQL".to_owned()).or_default();
        part.add(&path, &sql_comments(&text));
    }
    let total: u32 = folders.values().map(|part| part.measure.sentences).sum();
    assert!(total > 5000, "only {total} sentences were found");
    assert_plain(&folders);
}

/// Messages of errors and logs, answers of the gateway, descriptions of metrics and the texts of `--help` are literals of
/// the crates. A doc comment of an option is a comment.
#[test]
fn texts_for_users_name_their_subjects() {
    let mut texts = BTreeMap::<String, Part>::new();
    let document = "docs/openapi.json";
    let part = texts.entry(document.to_owned()).or_default();
    part.add(document, &descriptions(&read(document)));
    for Source { path, text } in files(&[".rs"]) {
        if let Some((name, _)) = path.split_once("/src/")
            && !is_test(&path)
        {
            let part = texts.entry(format!("texts of {name}")).or_default();
            part.add(&path, &literals(&text));
        }
    }
    let total: u32 = texts.values().map(|part| part.measure.sentences).sum();
    assert!(total > 1500, "only {total} sentences were found");
    assert_plain(&texts);
}

/// Every Markdown file belongs to a part: no document is left out.
#[test]
fn documents_name_their_subjects() {
    let mut documents = BTreeMap::<String, Part>::new();
    for Source { path, text } in files(&[".md"]) {
        let part = documents.entry(part_of_document(&path)).or_default();
        part.add(&path, &paragraphs(&text));
    }
    let total: u32 = documents.values().map(|part| part.measure.sentences).sum();
    assert!(total > 5000, "only {total} sentences were found");
    assert_plain(&documents);
}

/// The part that a document is measured with: its folder in `docs`, or the first component of its path. Documents in the
/// root are parts of their own.
fn part_of_document(path: &str) -> String {
    let part = match path.strip_prefix("docs/") {
        Some(_) => path.rsplit_once('/').map(|(folder, _)| folder),
        None => path.split('/').next(),
    };
    part.unwrap_or(path).to_owned()
}

/// The part of the repository that a file is measured with: its crate, and in a large crate the folder below `src`.
fn folder(path: &str) -> String {
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        [
            of @ ("activities" | "gateway" | "store" | "worker"),
            "src",
            below,
            _,
            ..,
        ] => {
            format!("{of}/src/{below}")
        }
        ["clients", language, ..] => format!("clients/{language}"),
        _ => parts[0].to_owned(),
    }
}

/// The different descriptions and summaries of the API's document, each with the line of its first use.
fn descriptions(document: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (line, text) in document.lines().enumerate() {
        let value = ["\"description\": ", "\"summary\": "]
            .into_iter()
            .find_map(|key| text.trim().strip_prefix(key));
        // The schema of a property with the name `description` is an object.
        let text = value.and_then(|value| serde_json::from_str(value.trim_end_matches(',')).ok());
        if let Some(text) = text
            && !found.iter().any(|(_, earlier)| *earlier == text)
        {
            found.push((line + 1, text));
        }
    }
    found
}

/// The paragraphs of line comments, each with the line in which it begins.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut last = 0;
    for (line, code) in text.lines().enumerate() {
        let line = line + 1;
        let Some(comment) = comment(code) else {
            continue;
        };
        match paragraphs.last_mut() {
            Some((_, paragraph)) if line == last + 1 => {
                paragraph.push(' ');
                paragraph.push_str(comment);
            }
            _ => paragraphs.push((line, comment.to_owned())),
        }
        last = line;
    }
    paragraphs
}

/// The paragraphs of comments of SQL; the comment of a parameter is a paragraph of its own.
fn sql_comments(text: &str) -> Vec<(usize, String)> {
    let as_document = |line: &str| match line.trim_start().strip_prefix("--") {
        Some(comment) if comment.starts_with(" :") => format!("-{comment}"),
        Some(comment) => comment.to_owned(),
        None => String::new(),
    };
    let document: Vec<_> = text.lines().map(as_document).collect();
    paragraphs(&document.join("\n"))
}

/// The paragraphs, items of lists and rows of tables of a document without its blocks of code, each with the line in
/// which it begins.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut is_code = false;
    for (line, text) in text.lines().enumerate() {
        let line = line + 1;
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
            paragraphs.push((line, String::new()));
        } else if !is_code {
            match paragraphs.last_mut() {
                Some((first, paragraph)) if !begins_paragraph(text) => {
                    // A blank line before the text began the paragraph.
                    if paragraph.is_empty() {
                        *first = line;
                    }
                    paragraph.push(' ');
                    paragraph.push_str(text);
                }
                _ => paragraphs.push((line, text.to_owned())),
            }
        }
    }
    paragraphs
}

fn begins_paragraph(line: &str) -> bool {
    let line = line.trim_start();
    let behind_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = behind_number.len() < line.len() && behind_number.starts_with('.');
    line.is_empty() || is_numbered || line.starts_with(['-', '*', '|', '#'])
}

/// The text of the comment in a line of code. `//` in a string or a URL begins none.
fn comment(code: &str) -> Option<&str> {
    let (mut is_in_string, mut is_escaped, mut before) = (false, false, ' ');
    for (at, c) in code.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' if before != '\'' => is_in_string = !is_in_string,
            '/' if !is_in_string && before != ':' && code[at..].starts_with("//") => {
                let text = &code[at + 2..];
                let text = text.strip_prefix(['/', '!']).unwrap_or(text);
                return Some(text.strip_prefix(' ').unwrap_or(text));
            }
            _ => {}
        }
        before = c;
    }
    None
}

fn sentences(paragraphs: &[(usize, String)]) -> Vec<Sentence> {
    let measured = |line: usize, text: &str| {
        let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '\'' | '’');
        let words = text
            .split(|c| !is_letter(c))
            .filter(|word| !word.is_empty());
        let words: Vec<_> = words.map(str::to_ascii_lowercase).collect();
        let pointing = words.iter().filter(|word| is_pointing(word)).count();
        (words.len() >= MIN_WORDS).then(|| Sentence {
            line,
            text: text.trim().to_owned(),
            words: u32::try_from(words.len()).unwrap(),
            pointing: u32::try_from(pointing).unwrap(),
        })
    };
    paragraphs
        .iter()
        .flat_map(|(line, text)| {
            let sentences = split(&without_code(text));
            let sentences = sentences.into_iter();
            sentences.filter_map(move |sentence| measured(*line, &sentence))
        })
        .collect()
}

/// True for a pointing word, also with an apostrophe behind it: "it's", "that'll".
fn is_pointing(word: &str) -> bool {
    let parts = word.split(['\'', '’']);
    parts.into_iter().any(|part| POINTING.contains(&part))
}

/// A text with `X` for each piece of code in it.
fn without_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => {
                plain.push('X');
                plain.push_str(after);
            }
            None => plain.push_str(code),
        }
    }
    plain
}

/// The sentences of a text: one ends with a mark before a space and a capital letter.
fn split(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        sentences.last_mut().unwrap().push(c);
        if !matches!(c, '.' | '!' | '?' | ':') {
            continue;
        }
        let mut spaces = 0;
        while chars.next_if(|next| next.is_whitespace()).is_some() {
            spaces += 1;
        }
        if spaces > 0 && chars.peek().is_some_and(char::is_ascii_uppercase) {
            sentences.push(String::new());
        } else if spaces > 0 {
            sentences.last_mut().unwrap().push(' ');
        }
    }
    sentences
}

#[test]
fn documents_are_measured_by_folder() {
    let parts = [
        ("docs/hooks.md", "docs"),
        ("docs/api/turns.md", "docs/api"),
        ("README.md", "README.md"),
        ("clients/python/README.md", "clients"),
    ];
    for (path, part) in parts {
        assert_eq!(part_of_document(path), part);
    }
}

#[test]
fn sentences_are_found_in_documents_and_measured() {
    let document = "# A heading\n\nIt holds nothing that\nanybody said.\n\n1. The lease of one worker, every second.\n\
                    ```\nIt holds nothing that anybody said.\n```\n";
    let found = sentences(&paragraphs(document));
    let found: Vec<_> = found
        .iter()
        .map(|sentence| (sentence.line, sentence.words, sentence.pointing))
        .collect();
    assert_eq!(found, [(3, 6, 4), (6, 7, 1)]);
}

#[test]
fn sentences_are_found_in_descriptions_and_measured() {
    let document = r#"
  "summary": "Returns the state of a turn.",
  "description": {
    "description": "It holds nothing that \"anybody\" said."
  },
  "description": "Returns the state of a turn."
"#;
    let found = sentences(&descriptions(document));
    let found: Vec<_> = found
        .iter()
        .map(|sentence| (sentence.line, sentence.words, sentence.pointing))
        .collect();
    assert_eq!(found, [(2, 6, 0), (4, 6, 4)]);
}

#[test]
fn sentences_are_found_in_comments_and_measured() {
    let code = r#"
//! It holds nothing that anybody said.

let url = "https://example.com"; // The lease of one worker, which `Lease`
// renews every second. Short here.
let text = "// no comment at all in this string";
"#;
    let found = sentences(&comments(code));
    let found: Vec<_> = found
        .iter()
        .map(|sentence| (sentence.line, sentence.words, sentence.pointing))
        .collect();
    assert_eq!(found, [(2, 6, 4), (4, 10, 2)]);
    let mut measure = Measure::default();
    for sentence in sentences(&comments(code)) {
        measure.add(&sentence);
    }
    assert!(!measure.is_plain(), "{measure:?}");
}
