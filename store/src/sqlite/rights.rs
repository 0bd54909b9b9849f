//! The rights on the file: the database has conversations, and only its owner may read them.
//!
//! SQLite makes a new file with mode 0644, and gives `-wal` and `-shm` the mode of the file. This code therefore makes
//! the file before SQLite does.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{api::Result, error::StoreError};

/// The mode of a new folder: only its owner may list and enter the folder.
const FOLDER: u32 = 0o700;
/// The mode of a new file: only its owner may read and write the file.
const FILE: u32 = 0o600;
/// The rights of users who are neither the owner nor in the group.
const OTHERS: u32 = 0o007;

/// Creates a missing folder and a missing file for their owner alone, and takes the rights of others from existing
/// files.
pub(super) fn prepare(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        let mut folder = DirBuilder::new();
        let made = folder.recursive(true).mode(FOLDER).create(parent);
        made.map_err(unavailable)?;
    }
    let mut file = OpenOptions::new();
    let made = file.write(true).create_new(true).mode(FILE).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            for file in files(path) {
                take_from_others(&file);
            }
            Ok(())
        }
        Err(error) => Err(unavailable(error)),
    }
}

/// Returns the file, and the files that SQLite keeps beside the file.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|ending| {
        let mut name = OsString::from(path);
        name.push(ending);
        PathBuf::from(name)
    })
}

/// Takes the rights of others from a file. The group keeps its rights: an operator gives rights to a group on purpose,
/// for a backup or on a volume (`fsGroup`), while a umask gives rights to everybody by accident. A failure is a warning
/// alone, because a process that does not own the file can still work with the file.
fn take_from_others(file: &Path) {
    let Ok(found) = fs::metadata(file) else {
        // SQLite keeps `-wal` and `-shm` only while the database is open, or after kill -9.
        return;
    };
    let mode = found.permissions().mode();
    if mode & OTHERS == 0 {
        return;
    }
    let (shown, wide) = (file.display(), mode & 0o777);
    match fs::set_permissions(file, Permissions::from_mode(mode & !OTHERS)) {
        Ok(()) => tracing::warn!(
            "{shown} had mode {wide:o}, so every user of this machine could read the conversations; others have no rights \
             on the file now"
        ),
        Err(error) => tracing::warn!(
            %error,
            "{shown} has mode {wide:o}, so every user of this machine can read the conversations; run chmod o= on the \
             file as its owner"
        ),
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable(error.into())
}
