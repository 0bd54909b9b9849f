//! The hints of a started `everturn dev`: links for a browser, and commands for the user's shell.

use std::{
    fmt::{self, Display},
    path::Path,
};

use everturn_proto::ids;

use crate::shell::{program, quoted};

/// The data of the hints. Every command works unchanged in the shell of `everturn dev`.
pub(super) struct Hints<'a> {
    /// URL of the gateway.
    pub(super) url: &'a str,
    /// The conversation of the sample turn.
    pub(super) conversation_id: Option<&'a str>,
    /// The `temporal` program, as the user named it.
    pub(super) temporal_bin: &'a Path,
    pub(super) temporal_port: u16,
    /// Port of Temporal's web UI, if `everturn dev` started the server.
    pub(super) ui_port: Option<u16>,
}

impl Display for Hints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url;
        writeln!(f, "\nIn a browser:")?;
        writeln!(f, "  {:<34}  talk to your agents", format!("{url}/"))?;
        writeln!(f, "  {:<34}  the API, to try out", format!("{url}/docs"))?;
        if let Some(port) = self.ui_port {
            let ui = format!("http://127.0.0.1:{port}/");
            writeln!(f, "  {ui:<34}  the turns, as Temporal sees them")?;
        }
        let program = program();
        let temporal = self.temporal_bin.to_string_lossy();
        let temporal = format!("{} workflow", quoted(&temporal));
        let address = format!("--address 127.0.0.1:{}", self.temporal_port);
        writeln!(f, "In another terminal, from this directory:")?;
        writeln!(f, "  {program} chat --url {url}")?;
        writeln!(
            f,
            "  {temporal} list {address} --query 'AgentName=\"default\"'"
        )?;
        if let Some(conversation_id) = self.conversation_id {
            let workflow = format!("--workflow-id {}", ids::workflow_id(conversation_id));
            writeln!(f, "  {temporal} show {address} {workflow}")?;
            writeln!(f, "  {temporal} query {address} {workflow} --type status")?;
        }
        write!(f, "Ctrl-C stops everything; the data stays.")
    }
}
