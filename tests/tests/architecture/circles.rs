//! No files of a crate name one another in a circle.
//!
//! The front of a folder is its `mod.rs` or `lib.rs`. In every crate, a file may take from the front of a folder in which
//! the file stands, and apart from such fronts there is no circle. In the folders of [`ONE_WAY`], the fronts count, too:
//! a front names the parts of its folder, and no part names the front.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    paths::ModulePath,
    repository::{files, root},
    rooms::{file_of, named_in},
};

/// Each file with the files that it names.
type Arrows = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Folders in which no file names the front of its folder in a circle.
const ONE_WAY: &[&str] = &[
    "activities/src",
    "models/src",
    "tools/src",
    "codec/src",
    "config/src",
    "gateway/src",
    "store/src/backend",
    "supervisor/src",
    "telemetry/src",
    "terminal/src",
    "tests/servers/src",
    "worker/src",
];

#[test]
fn files_beside_one_another_are_in_no_circle() {
    let crates = crates();
    assert!(crates.len() > 15, "{crates:?}");
    for source in &crates {
        let mut arrows = arrows(source);
        for (file, targets) in &mut arrows {
            targets.retain(|target| !file.starts_with(target));
        }
        if let Some(circle) = circles(&arrows).first() {
            panic!(
                "{source}: these name one another in a circle: {}",
                shown(circle, &arrows)
            );
        }
    }
}

#[test]
fn files_of_some_folders_do_not_name_their_front_in_a_circle() {
    for folder in ONE_WAY {
        assert!(root().join(folder).is_dir(), "{folder} is gone");
        let arrows = arrows(folder);
        if let Some(circle) = circles(&arrows).first() {
            panic!(
                "{folder}: these name one another in a circle: {}",
                shown(circle, &arrows)
            );
        }
    }
}

/// The folders of sources of all crates.
fn crates() -> BTreeSet<String> {
    let sources = files(&[".rs"]);
    let folders = sources.iter().filter_map(|source| {
        let (folder, _) = source.path.split_once("/src/")?;
        let is_crate = root().join(folder).join("Cargo.toml").is_file();
        is_crate.then(|| format!("{folder}/src"))
    });
    folders.collect()
}

/// The files of a folder, and the other files of the folder that each of them names.
fn arrows(folder: &str) -> Arrows {
    let files = named_in(folder);
    let arrows = files.iter().map(|(file, names)| {
        let targets = names.iter().map(|named| file_of(named, &files));
        let others = targets.filter(|target| target != file);
        (file.clone(), others.collect())
    });
    arrows.collect()
}

/// The circles: sets of files, each of which leads to all others of its set.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<ModulePath>> {
    let reached: BTreeMap<_, _> = arrows
        .keys()
        .map(|file| (file, reached_from(file, arrows)))
        .collect();
    let circle = |file: &ModulePath| -> BTreeSet<ModulePath> {
        let there = reached[file].iter();
        let back = there.filter(|other| reached.get(other).is_some_and(|far| far.contains(file)));
        back.cloned().collect()
    };
    let circles: BTreeSet<_> = arrows.keys().map(circle).collect();
    circles
        .into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// The files that the arrows of a file lead to, over any number of other files.
fn reached_from(file: &ModulePath, arrows: &Arrows) -> BTreeSet<ModulePath> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![file]);
    while let Some(next) = left.pop() {
        for target in arrows.get(next).into_iter().flatten() {
            if reached.insert(target.clone()) {
                left.push(target);
            }
        }
    }
    reached
}

/// The arrows within a circle, one in a line.
fn shown(circle: &BTreeSet<ModulePath>, arrows: &Arrows) -> String {
    let mut lines = String::new();
    for file in circle {
        for target in arrows[file].intersection(circle) {
            let line = ["\n  ", &file.join("::"), " names ", &target.join("::")];
            lines.extend(line);
        }
    }
    lines
}

#[test]
fn circles_are_found_and_what_leads_to_them_is_no_part() {
    let path = |text: &str| -> ModulePath { text.split("::").map(str::to_owned).collect() };
    let arrows: Arrows = [
        ("a::x", vec!["a::y"]),
        ("a::y", vec!["a::z::w", "b"]),
        ("a::z::w", vec!["a::x"]),
        ("b", vec!["c"]),
        ("c", vec![]),
        ("d", vec!["a::x"]),
    ]
    .into_iter()
    .map(|(file, targets)| (path(file), targets.into_iter().map(path).collect()))
    .collect();
    let found = circles(&arrows);
    assert_eq!(found, [["a::x", "a::y", "a::z::w"].map(path).into()]);
}
