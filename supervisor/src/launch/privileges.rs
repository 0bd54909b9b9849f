//! Gives up a process's rights before the process becomes the program.

use nix::sys::prctl;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::{error::LaunchError, user::User};

/// Becomes the user, if the policy names a user, and gives up every capability. Root is then only the owner of root's
/// files. The rights never come back: setuid programs have no effect, and root's programs get no capabilities.
pub(super) fn give_up(user: Option<&User>) -> Result<(), LaunchError> {
    if let Some(user) = user {
        user.become_user().map_err(|source| LaunchError::User {
            user: user.name.clone(),
            source,
        })?;
    }
    prctl::set_no_new_privs().map_err(|error| LaunchError::Rights(error.into()))?;
    let rights = capabilities(None).map_err(|error| LaunchError::Rights(error.into()))?;
    if (rights.permitted | rights.inheritable).is_empty() {
        // docs/libraries.md, landlock and rustix: capset is refused where a filter of system calls leaves it out
        return Ok(());
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| LaunchError::Rights(error.into()))
}
