//! Closes the ways around a program's rules of ports: connections that Landlock does not check.

use std::{collections::BTreeMap, env::consts::ARCH};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::{error::LaunchError, policy::Policy};

/// Multipath TCP, which falls back to TCP. docs/libraries.md, seccompiler: Landlock checks only connect
const IPPROTO_MPTCP: u64 = 262;
/// The number of a call in the x32 form of x86-64 has this bit.
const X32: i64 = 0x4000_0000;

/// A filter of system calls. The program gets EACCES for Multipath TCP, for data in the first packet of a connection
/// (TCP Fast Open), and for rings of system calls, which no filter sees.
pub(super) struct SocketFilter(BpfProgram);

impl SocketFilter {
    /// Returns the filter of a policy; `None` where the policy has no rules of ports, and on a processor that the library
    /// does not know.
    pub(super) fn of(policy: &Policy) -> Result<Option<Self>, LaunchError> {
        let access = &policy.access;
        let has_ports = access.connect_ports.is_some() || !access.closed_ports.is_empty();
        let Some(arch) = TargetArch::try_from(ARCH).ok().filter(|_| has_ports) else {
            return Ok(None);
        };
        let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
        let filter = SeccompFilter::new(rules()?, SeccompAction::Allow, denied, arch)?;
        Ok(Some(Self(filter.try_into()?)))
    }

    /// Limits this process and its later children, irrevocably. The process must have given up new privileges.
    pub(super) fn apply(&self, policy: &Policy) -> Result<(), LaunchError> {
        match apply_filter(&self.0) {
            // A kernel without filters cannot keep the rule, as an old kernel cannot keep rules of Landlock.
            Err(_) if !policy.requires_landlock => Ok(()),
            applied => Ok(applied?),
        }
    }
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, LaunchError> {
    let flag = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
    let fast_open = |argument| when(argument, SeccompCmpOp::MaskedEq(flag), flag);
    let calls = [
        (
            libc::SYS_socket,
            vec![when(2, SeccompCmpOp::Eq, IPPROTO_MPTCP)?],
        ),
        (libc::SYS_sendto, vec![fast_open(3)?]),
        (libc::SYS_sendmsg, vec![fast_open(2)?]),
        (libc::SYS_sendmmsg, vec![fast_open(3)?]),
        (libc::SYS_io_uring_setup, Vec::new()),
    ];
    let numbers = |number| {
        let x32 = (ARCH == "x86_64").then_some(number | X32);
        [Some(number), x32].into_iter().flatten()
    };
    let rules = calls
        .into_iter()
        .flat_map(|(call, rules)| numbers(call).map(move |number| (number, rules.clone())));
    Ok(rules.collect())
}

/// Returns the rule for a call whose argument of 32 bits fits.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, LaunchError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::launch::policy::Access;

    #[test]
    fn only_a_policy_with_rules_of_ports_has_a_filter() {
        let has_filter = |access| {
            let policy = Policy {
                access,
                ..Policy::default()
            };
            SocketFilter::of(&policy).unwrap().is_some()
        };
        assert!(!has_filter(Access::default()));
        assert!(has_filter(Access {
            connect_ports: Some(vec![]),
            ..Access::default()
        }));
        assert!(has_filter(Access {
            closed_ports: vec![7233],
            ..Access::default()
        }));
    }
}
