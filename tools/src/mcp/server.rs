//! An MCP server as a source of tools, for the tenants and agents that may use the server.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use everturn_proto::Json;
use everturn_store::ConsentOf;

use super::{
    error::without_access,
    link::Link,
    oauth::{AccessError, Person},
    offered::Offered,
    options::ServerOptions,
    pool::{LinkGuard, Pool},
    status::{self, ServerState, ServerStatus},
};
use crate::{
    checked::CheckedTool,
    consents::PersonConsents,
    context::{Asker, ToolContext},
    egress::Egress,
    error::ToolError,
    registry::{ToolSet, ToolSource},
    tool::{Tool, ToolOrigin, ToolSpec},
};

/// An MCP server as a source of tools.
pub struct McpServer {
    pool: Arc<Pool>,
    /// The consents of people, for a server that people consent to.
    consents: OnceLock<Arc<PersonConsents>>,
    /// The tools that people without a consent are offered.
    offered: Offered,
}

impl McpServer {
    /// Creates a source that connects at first use. Requests for the server's tokens go through `egress`.
    pub fn new(options: ServerOptions, egress: Egress) -> Self {
        Self {
            pool: Pool::new(options, egress),
            consents: OnceLock::new(),
            offered: Offered::default(),
        }
    }

    /// Connects once in the name of the tenant, and returns the state of the server.
    pub async fn status(&self, tenant_id: &str) -> ServerStatus {
        let options = self.pool.options();
        let without_try = |state: ServerState| ServerStatus {
            name: options.name.clone(),
            address: options.location.address(),
            took: Duration::ZERO,
            state,
        };
        if options.needs_consent() {
            return without_try(ServerState::NeedsConsent);
        }
        match self.pool.link(tenant_id, None) {
            Ok((link, _in_use)) => link.status().await,
            Err(error) => without_try(ServerState::Unavailable {
                reason: error.to_string(),
                output: Vec::new(),
            }),
        }
    }

    /// Returns the link for the asker. The error is for the model.
    async fn link(&self, asker: Asker<'_>) -> Result<(Arc<Link>, LinkGuard), ToolError> {
        let person = if self.pool.options().needs_consent() {
            Some(self.person(asker).await?)
        } else {
            None
        };
        self.pool.link(asker.tenant_id, person)
    }

    /// Returns the person with the person's consent. The error is for the model.
    async fn person(&self, asker: Asker<'_>) -> Result<Person, ToolError> {
        let server = &self.pool.options().name;
        let Some(owner_id) = asker.owner_id.filter(|owner| !owner.is_empty()) else {
            return Err(ToolError::Failed(format!(
                "MCP server `{server}` is used in the name of a person, and the conversation has no owner \
                 (mcp_consent_needed). The tool was not called."
            )));
        };
        let consents = self.consents.get().ok_or_else(|| needed(server, None))?;
        let of = ConsentOf {
            tenant_id: asker.tenant_id.to_owned(),
            owner_id: owner_id.to_owned(),
            server: server.clone(),
        };
        let found = consents.id(&of).await.map_err(|error| {
            let error = AccessError::Unavailable(error.to_string());
            without_access(server, &error)
        })?;
        let consent_id = found.ok_or_else(|| needed(server, Some(consents)))?;
        Ok(Person {
            of,
            consent_id,
            consents: Arc::clone(consents),
        })
    }
}

/// Returns the error of a call without a consent.
fn needed(server: &str, consents: Option<&Arc<PersonConsents>>) -> ToolError {
    let way = consents.map(|consents| consents.way(server));
    let way = way.map_or_else(String::new, |way| {
        format!(" Tell the user to connect `{server}` first: POST {way} returns the address to open in a browser.")
    });
    ToolError::Failed(format!(
        "The user has not consented to the use of MCP server `{server}` in the user's name (mcp_consent_needed). The tool \
         was not called.{way}"
    ))
}

#[async_trait]
impl ToolSource for McpServer {
    async fn tools(&self, asker: Asker<'_>) -> Arc<ToolSet> {
        if !self.pool.options().serves(asker) {
            return Arc::default();
        }
        let needs_consent = self.pool.options().needs_consent();
        match self.link(asker).await {
            Ok((link, _in_use)) if needs_consent => {
                let tools = link.tools().await;
                self.offered.note(asker.tenant_id, &tools);
                tools
            }
            Ok((link, _in_use)) => link.tools().await,
            Err(_) if needs_consent => self.offered.tools(asker.tenant_id),
            Err(_no_room) => Arc::default(),
        }
    }

    async fn find(&self, name: &str, asker: Asker<'_>) -> Result<CheckedTool, ToolError> {
        let gone = || {
            let server = &self.pool.options().name;
            ToolError::Failed(format!(
                "MCP server `{server}` has no tool with this name now. Use only the tools that you were given."
            ))
        };
        if !self.pool.options().serves(asker) {
            return Err(gone());
        }
        let (link, guard) = self.link(asker).await?;
        if !link.known().contains_key(name) {
            link.connection().await?;
        }
        let tool = link.known().get(name).cloned().ok_or_else(gone)?;
        Ok(tool.with(|tool| {
            Arc::new(InUse {
                tool,
                _guard: guard,
            })
        }))
    }

    fn probe_of(&self, name: &str) -> Option<String> {
        self.pool.options().probe_of(name)
    }

    async fn note(&self, asker: Asker<'_>) -> Option<String> {
        let options = self.pool.options();
        if !options.serves(asker) {
            return None;
        }
        match self.link(asker).await {
            Ok((link, _in_use)) => link.note(),
            Err(error) if options.needs_consent() => {
                Some(status::without_consent(&options.name, &error.to_string()))
            }
            Err(_no_room) => Some(status::missing(&options.name)),
        }
    }

    fn use_consents(&self, consents: &Arc<PersonConsents>) {
        // A process has one store.
        let _given = self.consents.set(Arc::clone(consents));
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// A tool that keeps its link open while a caller holds the tool.
struct InUse {
    tool: Arc<dyn Tool>,
    _guard: LinkGuard,
}

#[async_trait]
impl Tool for InUse {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn origin(&self) -> ToolOrigin {
        self.tool.origin()
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        self.tool.run(context, input).await
    }
}
