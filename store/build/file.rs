//! Reads a file of `sql/`: the head (comment, index, parameters) and the text. Must not be here: Rust code to generate.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// A parameter of a statement: `-- :message_id text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) comment: String,
}

/// The type of a parameter, as the head writes the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) base: Base,
    /// `text?`: the value may be NULL.
    pub(crate) is_optional: bool,
    /// `text[]`: the text uses the parameter as `IN (:ids)`, as `NOT IN (:ids)`, or as an inserted value.
    pub(crate) is_list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Text,
    Bigint,
    Integer,
    Boolean,
    Timestamp,
    Json,
    Bytes,
}

/// A statement in one dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) path: PathBuf,
    pub(crate) comment: Vec<String>,
    /// The indexes that carry the statement: the line `-- Index: name, name`.
    pub(crate) indexes: Vec<String>,
    pub(crate) parameters: Vec<Parameter>,
    /// True for an insert of any number of rows: the line `-- rows: many`.
    pub(crate) is_many_rows: bool,
    /// The text on one line, with `:name` for parameters.
    pub(crate) sql: String,
}

/// A statement: the same text for every dialect, or a text for each.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) subject: String,
    pub(crate) name: String,
    pub(crate) texts: BTreeMap<Dialect, Text>,
}

/// Reads `<folder>/<subject>/<name>[.sqlite|.postgres].sql`.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<Statement>, String> {
    let mut statements: BTreeMap<(String, String), BTreeMap<Dialect, Text>> = BTreeMap::new();
    for subject in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&subject)? {
            let file = name_of(&path);
            let Some(stem) = file.strip_suffix(".sql") else {
                return Err(format!(
                    "{}: a statement's file ends with .sql",
                    path.display()
                ));
            };
            let (name, dialects) = match stem.rsplit_once('.') {
                Some((name, "sqlite")) => (name, &[Dialect::Sqlite][..]),
                Some((name, "postgres")) => (name, &[Dialect::Postgres][..]),
                _ => (stem, &[Dialect::Sqlite, Dialect::Postgres][..]),
            };
            let content = fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let text = parse(&path, &content)?;
            let texts = statements
                .entry((name_of(&subject), name.to_owned()))
                .or_default();
            for dialect in dialects {
                if texts.insert(*dialect, text.clone()).is_some() {
                    let path = path.display();
                    return Err(format!(
                        "{path}: the statement has two texts for {}",
                        dialect.name()
                    ));
                }
            }
        }
    }
    let statements: Vec<_> = statements
        .into_iter()
        .map(|((subject, name), texts)| Statement {
            subject,
            name,
            texts,
        })
        .collect();
    for statement in &statements {
        check_types(statement)?;
    }
    Ok(statements)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads one file. The head is every line before the first line that is no comment.
pub(crate) fn parse(path: &Path, content: &str) -> Result<Text, String> {
    let wrong = |what: String| Err(format!("{}: {what}", path.display()));
    let mut text = Text {
        path: path.to_owned(),
        comment: Vec::new(),
        indexes: Vec::new(),
        parameters: Vec::new(),
        is_many_rows: false,
        sql: String::new(),
    };
    let mut lines = content.lines().peekable();
    while let Some(line) = lines.next_if(|line| line.starts_with("--") || line.trim().is_empty()) {
        let line = line.trim_start_matches('-').trim();
        if let Some(parameter) = line.strip_prefix(':') {
            text.parameters.push(
                parse_parameter(parameter).map_err(|what| format!("{}: {what}", path.display()))?,
            );
        } else if let Some(indexes) = line.strip_prefix("Index: ") {
            text.indexes.extend(parse_indexes(indexes));
        } else if line == "rows: many" {
            text.is_many_rows = true;
        } else if !line.is_empty() {
            text.comment.push(line.to_owned());
        }
    }
    let body: Vec<_> = lines
        .map(|line| line.split(" -- ").next().unwrap_or_default().trim())
        .collect();
    let body: Vec<_> = body
        .into_iter()
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
        .collect();
    text.sql = body.join(" ");
    if text.comment.is_empty() {
        return wrong("the head has no sentence that says what the statement does".into());
    }
    if text.indexes.is_empty() {
        return wrong("the head has no line `-- Index: …`".into());
    }
    if text.sql.is_empty() || text.sql.ends_with(';') {
        return wrong("the file has one statement, without a semicolon at its end".into());
    }
    check_parameters(&text)?;
    Ok(text)
}

/// Refuses a parameter without a use, a use without a parameter, and a list outside `IN (…)`.
fn check_parameters(text: &Text) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{}: {what}", text.path.display()));
    let used = used_names(&text.sql);
    for parameter in &text.parameters {
        if !used.contains(&parameter.name) {
            return wrong(format!(
                "the text does not use the parameter `:{}`",
                parameter.name
            ));
        }
        let list = format!("IN (:{})", parameter.name);
        let uses = used.iter().filter(|name| **name == parameter.name).count();
        let in_lists = text.sql.matches(&list).count();
        if parameter.kind.is_list && in_lists + values_of(&text.sql, &parameter.name) != uses {
            return wrong(format!(
                "the list `:{}` must be used as `{list}`",
                parameter.name
            ));
        }
    }
    for name in used {
        if text
            .parameters
            .iter()
            .all(|parameter| parameter.name != name)
        {
            return wrong(format!("the head does not declare the parameter `:{name}`"));
        }
    }
    Ok(())
}

/// Counts a parameter among the inserted values. A list there is the value of a column.
fn values_of(sql: &str, name: &str) -> usize {
    let values = sql
        .split_once("VALUES (")
        .and_then(|(_, rest)| rest.split_once(')'));
    let names = values.map_or_else(Vec::new, |(values, _)| used_names(values));
    names.iter().filter(|used| *used == name).count()
}

/// Reads `name, name`, or `none: reason`.
fn parse_indexes(line: &str) -> Vec<String> {
    if line.starts_with("none: ") {
        return vec![line.to_owned()];
    }
    let names = line.split(',').map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

fn parse_parameter(line: &str) -> Result<Parameter, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(kind)) = (words.next(), words.next()) else {
        return Err(format!("write `-- :name type`, not `-- :{line}`"));
    };
    let is_name = name
        .bytes()
        .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_name {
        return Err(format!(
            "a parameter is named in small letters, not `:{name}`"
        ));
    }
    let (base, is_optional, is_list) = match (kind.strip_suffix('?'), kind.strip_suffix("[]")) {
        (Some(base), _) => (base, true, false),
        (_, Some(base)) => (base, false, true),
        _ => (kind, false, false),
    };
    let base = match base {
        "text" => Base::Text,
        "bigint" => Base::Bigint,
        "integer" => Base::Integer,
        "boolean" => Base::Boolean,
        "timestamp" => Base::Timestamp,
        "json" => Base::Json,
        "bytes" => Base::Bytes,
        other => {
            return Err(format!(
                "`{other}` is no type: text, bigint, integer, boolean, timestamp, json or bytes"
            ));
        }
    };
    if is_list && base != Base::Text {
        return Err(format!("`{kind}` is no type: a list is `text[]`"));
    }
    Ok(Parameter {
        name: name.to_owned(),
        kind: Kind {
            base,
            is_optional,
            is_list,
        },
        comment: words.collect::<Vec<_>>().join(" "),
    })
}

/// A piece of a text.
pub(crate) enum Piece<'a> {
    Words(&'a str),
    Parameter(&'a str),
}

/// Splits a text into words and parameters. `:name` in a quoted text and `::` are words.
pub(crate) fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let bytes = sql.as_bytes();
    let is_name = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|byte| *byte == b'_' || byte.is_ascii_alphanumeric())
    };
    let (mut pieces, mut begin, mut at, mut is_quoted) = (Vec::new(), 0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' => is_quoted = !is_quoted,
            b':' if !is_quoted && bytes.get(at + 1) == Some(&b':') => at += 1,
            b':' if !is_quoted && is_name(at + 1) => {
                let end = (at + 1..bytes.len())
                    .find(|at| !is_name(*at))
                    .unwrap_or(bytes.len());
                pieces.push(Piece::Words(&sql[begin..at]));
                pieces.push(Piece::Parameter(&sql[at + 1..end]));
                (begin, at) = (end, end);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    pieces.push(Piece::Words(&sql[begin..]));
    pieces
}

fn used_names(sql: &str) -> Vec<String> {
    let names = pieces(sql).into_iter().filter_map(|piece| match piece {
        Piece::Parameter(name) => Some(name.to_owned()),
        Piece::Words(_) => None,
    });
    names.collect()
}

/// Refuses a parameter that has one type for SQLite and another type for PostgreSQL.
fn check_types(statement: &Statement) -> Result<(), String> {
    let mut kinds = BTreeMap::new();
    for text in statement.texts.values() {
        for parameter in &text.parameters {
            let kind = kinds.entry(&parameter.name).or_insert(parameter.kind);
            if *kind != parameter.kind {
                let (path, name) = (text.path.display(), &parameter.name);
                return Err(format!(
                    "{path}: `:{name}` has another type in the other database's file"
                ));
            }
        }
    }
    Ok(())
}
