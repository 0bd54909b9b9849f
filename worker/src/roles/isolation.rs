//! Checks which of the configured limits on programs this machine's kernel can enforce.

use anyhow::bail;
use everturn_config::Config;
use everturn_supervisor::launch::{Enforcement, Policy};
use everturn_tools::mcp::ServerLocation;

/// Warns about limits that the kernel cannot enforce. Returns an error if the configuration requires them.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    let servers = config
        .mcp
        .iter()
        .filter_map(|server| match &server.location {
            ServerLocation::Command { launch, .. } => {
                Some((format!("[mcp.{}]", server.name), launch.policy()?))
            }
            ServerLocation::Url { .. } | ServerLocation::Unusable { .. } => None,
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
        Enforcement::Partial => "only an older version of Landlock than the policy needs",
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
