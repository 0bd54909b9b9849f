//! The user of a program.

use std::{io, path::PathBuf, process::Command};

use nix::unistd::{self, Gid, Uid};
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};

/// A user of this machine. The user's programs have a single group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user's name, or the number of a user without a name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The user's main group. A program has no further groups.
    pub gid: u32,
    /// The user's home directory, if known.
    pub home: Option<PathBuf>,
}

impl User {
    /// Finds a user by name or number. A number without a name is a valid user, too, and the group then has the same
    /// number. Returns `None` for an unknown name.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        let number = name.parse::<u32>().ok();
        let found = match number {
            Some(uid) => unistd::User::from_uid(Uid::from_raw(uid))?,
            None => unistd::User::from_name(name)?,
        };
        Ok(match (found, number) {
            (Some(user), _) => Some(Self {
                name: user.name,
                uid: user.uid.as_raw(),
                gid: user.gid.as_raw(),
                home: Some(user.dir),
            }),
            (None, Some(uid)) => Some(Self {
                name: name.to_owned(),
                uid,
                gid: uid,
                home: None,
            }),
            (None, None) => None,
        })
    }

    /// Returns true for the user of this process.
    pub fn is_current(&self) -> bool {
        unistd::geteuid().as_raw() == self.uid && unistd::getegid().as_raw() == self.gid
    }

    /// Returns true if this process may start programs as the user.
    pub fn can_be_switched_to(&self) -> bool {
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        self.is_current()
            || capabilities(None).is_ok_and(|rights| rights.effective.contains(needed))
    }

    /// Switches the process to the user, irrevocably.
    pub(super) fn become_user(&self) -> io::Result<()> {
        if self.is_current() {
            return Ok(());
        }
        unistd::setgroups(&[])?;
        unistd::setgid(Gid::from_raw(self.gid))?;
        Ok(unistd::setuid(Uid::from_raw(self.uid))?)
    }

    /// Sets the command's environment variables that name its user.
    pub(super) fn set_variables(&self, command: &mut Command) {
        command.env("USER", &self.name).env("LOGNAME", &self.name);
        match &self.home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name_or_a_number() {
        let root = User::find("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::find("0").unwrap().unwrap(), root);
        let nameless = User::find("268435456").unwrap().unwrap();
        assert_eq!(
            (nameless.uid, nameless.gid, nameless.home),
            (1 << 28, 1 << 28, None)
        );
        assert!(User::find("no such user").unwrap().is_none());
    }
}
