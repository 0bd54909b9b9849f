//! What the kernel of this machine enforces of what the configuration says about programs.

use anyhow::bail;
use everturn_activities::tools::mcp::ServerLocation;
use everturn_supervisor::launch::{Enforcement, Policy};

use crate::config::Config;

/// Warns of what the kernel cannot enforce. Refuses it where the configuration requires it.
pub(super) fn check(config: &Config) -> anyhow::Result<()> {
    let servers = config
        .mcp
        .iter()
        .filter_map(|server| match &server.location {
            ServerLocation::Command { launch, .. } => {
                Some((format!("[mcp.{}]", server.name), launch.policy()?))
            }
            ServerLocation::Url { .. } => None,
        });
    let tools = ("[processes]".to_owned(), &config.processes);
    for (of, policy) in servers.chain([tools]) {
        judge(&of, policy)?;
    }
    Ok(())
}

fn judge(of: &str, policy: &Policy) -> anyhow::Result<()> {
    let lacking = match policy.enforcement() {
        Enforcement::Full => return Ok(()),
        Enforcement::Partial => "only an older version of Landlock than this needs",
        Enforcement::Nothing => "no Landlock",
    };
    if policy.requires_landlock {
        bail!(
            "the kernel has {lacking}, and {of} has `require_landlock`. Use a newer kernel, or take `require_landlock` \
             away (docs/operate/isolation.md)"
        );
    }
    tracing::warn!(
        of,
        "the kernel has {lacking}: programs can reach more than is configured (docs/operate/isolation.md)"
    );
    Ok(())
}
