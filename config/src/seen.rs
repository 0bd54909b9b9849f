//! The files that a configuration was read from. A process looks at the files again to notice a change.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// The most bytes of a file that count for a change. No file of a configuration may be longer.
const MAX_BYTES: u64 = 8 << 20;

/// The files of a configuration, with hashes of their contents. A folder counts with the names in the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenFiles {
    hashes: BTreeMap<PathBuf, Option<[u8; 32]>>,
}

impl SeenFiles {
    /// Notes the present content of a file or a folder. The reader of a file calls the function first: a change between
    /// both calls is then noticed.
    pub(super) fn note(&mut self, path: &Path) {
        self.hashes
            .entry(path.to_owned())
            .or_insert_with(|| hash(path));
    }

    /// Returns true if a file has another content now. The content decides, and not the time of the file, because a
    /// mounted ConfigMap of Kubernetes changes by a link.
    pub fn have_changed(&self) -> bool {
        self.hashes.iter().any(|(path, seen)| hash(path) != *seen)
    }
}

/// Returns the hash of a content; `None` for a missing or unreadable file.
fn hash(path: &Path) -> Option<[u8; 32]> {
    let mut hash = Sha256::new();
    if path.is_dir() {
        let names = fs::read_dir(path).ok()?;
        let names = names.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut names: Vec<_> = names.collect();
        names.sort();
        for name in names {
            hash.update(name.as_encoded_bytes());
            hash.update([0]);
        }
    } else {
        io::copy(&mut File::open(path).ok()?.take(MAX_BYTES), &mut hash).ok()?;
    }
    Some(hash.finalize().into())
}
