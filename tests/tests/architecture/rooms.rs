//! The dependencies between the modules of a crate: which module may name which.
//!
//! A module is here a file or a folder of the listed folder, with everything in it. To check the modules of another folder,
//! add a table to [`ROOMS`].

use std::{collections::BTreeMap, path::Path};

use crate::{
    paths::{ModulePath, named_paths},
    repository::{files, root},
};

/// The modules of a folder, each with the modules of that folder that it may name. The folder's own `lib.rs` or `mod.rs`
/// may name all of them, and none may name it.
type Rooms = &'static [(&'static str, &'static [&'static str])];

const ROOMS: &[(&str, Rooms)] = &[
    ("gateway/src", GATEWAY),
    ("gateway/src/http", GATEWAY_HTTP),
    ("gateway/src/live", GATEWAY_LIVE),
];

const GATEWAY: Rooms = &[
    ("server", &["http", "connections", "config"]),
    (
        "http",
        &[
            "live",
            "ports",
            "limits",
            "turns",
            "connections",
            "consents",
            "config",
            "audited",
            "failed",
            "listed",
            "schema",
        ],
    ),
    (
        "live",
        &[
            "deliveries",
            "limits",
            "config",
            "listed",
            "schema",
            "fields",
            "sync",
        ],
    ),
    ("reconciler", &["turns", "config"]),
    ("lost_workers", &["turns"]),
    ("backlog", &[]),
    ("removals", &[]),
    ("ports", &["consents", "deliveries", "turns"]),
    ("consents", &[]),
    ("deliveries", &["fields"]),
    ("limits", &["config", "sync"]),
    ("turns", &[]),
    ("config", &[]),
    ("connections", &[]),
    ("audited", &["listed"]),
    ("failed", &["listed", "schema"]),
    ("listed", &["schema"]),
    ("schema", &[]),
    ("fields", &[]),
    ("sync", &[]),
];

const GATEWAY_HTTP: Rooms = &[
    (
        "routes",
        &[
            "state",
            "openapi",
            "extract",
            "auth",
            "audit",
            "problem",
            "event_stream",
            "range",
        ],
    ),
    ("room", &["state", "extract", "problem"]),
    ("state", &["extract", "auth", "audit", "problem"]),
    ("openapi", &["extract", "auth", "problem"]),
    ("extract", &["auth", "problem"]),
    ("auth", &["audit", "problem"]),
    ("audit", &["problem"]),
    ("problem", &[]),
    ("event_stream", &[]),
    ("range", &[]),
];

const GATEWAY_LIVE: Rooms = &[
    ("feed", &["reader", "sse", "frame", "end"]),
    (
        "hub",
        &[
            "tail",
            "reader",
            "broadcasts",
            "broadcast",
            "watcher",
            "log",
            "cursor",
            "end",
        ],
    ),
    ("tail", &["broadcast", "open_texts", "watcher", "log"]),
    (
        "reader",
        &["broadcast", "queue", "log", "sse", "frame", "end"],
    ),
    ("broadcasts", &["broadcast", "end"]),
    ("broadcast", &["queue", "open_texts", "sse", "frame", "end"]),
    ("queue", &["sse", "end"]),
    ("open_texts", &["seals", "generations", "sse", "frame"]),
    ("seals", &["newest"]),
    ("generations", &["newest"]),
    ("newest", &[]),
    ("watcher", &[]),
    ("log", &["cursor"]),
    ("sse", &["frame", "cursor"]),
    ("cursor", &[]),
    ("frame", &[]),
    ("end", &[]),
    ("lists", &["sse"]),
    ("timeline", &[]),
];

#[test]
fn rooms_name_only_what_is_below_them() {
    for (folder, rooms) in ROOMS {
        for (file, names) in named_in(folder) {
            let Some(room) = file.first() else { continue };
            let (_, allowed) = rooms
                .iter()
                .find(|(name, _)| name == room)
                .unwrap_or_else(|| panic!("{folder} has a new room, {room}: give it its arrows"));
            for named in names {
                let Some(other) = named.first() else { continue };
                let is_front = !rooms.iter().any(|(name, _)| name == other);
                assert!(
                    !is_front,
                    "{folder}: {room} names `{other}` of the folder's own front; name it where it stands"
                );
                assert!(
                    other == room || allowed.contains(&other.as_str()),
                    "{folder}: {room} must not name {other} (in {})",
                    file.join("::")
                );
            }
        }
        for (room, _) in *rooms {
            let path = root().join(folder).join(room);
            assert!(
                path.is_dir() || path.with_extension("rs").is_file(),
                "{folder} has no room {room} any more"
            );
        }
    }
}

/// The modules of a folder and the paths that each names in it, all from the folder on.
pub(crate) fn named_in(folder: &str) -> BTreeMap<ModulePath, Vec<ModulePath>> {
    let (crate_folder, inner) = folder.split_once("src").unwrap();
    let crate_source = format!("{crate_folder}src/");
    let inner: ModulePath = inner
        .split('/')
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    let mut named = BTreeMap::new();
    for source in files(&[".rs"]) {
        if !source.path.starts_with(&format!("{folder}/")) {
            continue;
        }
        let module = module_of(Path::new(source.path.strip_prefix(&crate_source).unwrap()));
        let names = named_paths(&source.text, &module)
            .into_iter()
            .filter_map(|named| Some(named.strip_prefix(inner.as_slice())?.to_vec()));
        named.insert(module[inner.len()..].to_vec(), names.collect());
    }
    named
}

/// The module of a source file, from the crate's root on.
fn module_of(file: &Path) -> ModulePath {
    let mut module: ModulePath = file
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    module
}

/// The file in which a named path leads: the longest one that is a module.
pub(crate) fn file_of(
    named: &[String],
    files: &BTreeMap<ModulePath, Vec<ModulePath>>,
) -> ModulePath {
    (0..=named.len())
        .rev()
        .map(|length| named[..length].to_vec())
        .find(|module| files.contains_key(module))
        .unwrap_or_default()
}
