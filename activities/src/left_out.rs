//! The tools that this worker leaves out of requests, because a provider would refuse them. The log names each tool once,
//! and gateways show the tools of all workers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use everturn_store::{LeftOutTool, MAX_LEFT_OUT_TOOLS};

/// The left-out tools of a worker. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct LeftOutTools(Arc<Mutex<BTreeSet<LeftOutTool>>>);

impl LeftOutTools {
    /// Notes a tool, and logs a new one. Further tools than the limit are only in the log, again and again.
    pub(crate) fn note(&self, tool: LeftOutTool) {
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.contains(&tool) {
            return;
        }
        tracing::warn!(
            tenant_id = tool.tenant_id,
            agent = tool.agent,
            tool = tool.tool,
            model = tool.model,
            reason = tool.reason,
            "a tool is left out, because the model's provider would refuse every request with the tool"
        );
        if tools.len() < MAX_LEFT_OUT_TOOLS {
            tools.insert(tool);
        }
    }

    /// Forgets the tools, because the configuration has changed.
    pub(crate) fn forget(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Returns the tools.
    pub fn now(&self) -> Vec<LeftOutTool> {
        let tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tools.iter().cloned().collect()
    }
}
