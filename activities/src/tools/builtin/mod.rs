//! The built-in tools.
//!
//! - [`calculate`]: exact arithmetic
//! - [`current_time`]: the time anywhere
//! - [`work_plan`]: a plan the agent makes and follows, shown to the user as events
//! - [`test_tool`], `hostile_tool`: tools whose behaviour a test commands; registered only when asked for
//!
//! To add one: a file here with its spec and `run`, a line in [`all`].

pub mod calculate;
pub mod current_time;
mod hostile_tool;
pub mod test_tool;
pub mod work_plan;

use std::{path::PathBuf, sync::Arc};

use everturn_proto::Json;
use serde::de::DeserializeOwned;

pub use calculate::Calculate;
pub use current_time::CurrentTime;
use hostile_tool::HostileTool;
pub use test_tool::TestTool;
pub use work_plan::WorkPlan;

use super::{Effect, Tool, ToolError, typed};

/// The tools every worker has.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Calculate::new()),
        Arc::new(CurrentTime::new()),
        Arc::new(WorkPlan::new()),
    ]
}

/// Tools for tests, one for each effect: `test_read`, `test_idempotent` and `test_once`. Their effects are lines
/// in `effect_file`. And `test_hostile`, which does what a tool must not do.
pub fn test_tools(effect_file: impl Into<PathBuf>) -> Vec<Arc<dyn Tool>> {
    let effect_file = effect_file.into();
    let tool = |name, effect| {
        Arc::new(TestTool::new(name, effect, Some(effect_file.clone()))) as Arc<dyn Tool>
    };
    vec![
        tool("test_read", Effect::Read),
        tool("test_idempotent", Effect::Idempotent),
        tool("test_once", Effect::Once),
        typed(HostileTool::new(effect_file.clone())),
    ]
}

/// Reads the input of a built-in tool. The registry has checked it against the schema before, so that an error
/// here is a schema that says less than the type.
fn read<T: DeserializeOwned>(input: &Json) -> Result<T, ToolError> {
    input
        .decode()
        .map_err(|error| ToolError::Failed(format!("The arguments cannot be read: {error}.")))
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of the built-in tools share.

    use tokio_util::sync::CancellationToken;

    use crate::tools::{Progress, ToolContext};

    pub(crate) fn context() -> ToolContext {
        ToolContext {
            conversation_id: "c".into(),
            message_id: "m".into(),
            execution_id: "exec_0123456789ab".into(),
            call_id: "call_1".into(),
            idempotency_key: "c/m/exec_0123456789ab".into(),
            attempt: 1,
            cancellation: CancellationToken::new(),
            progress: Progress::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolRegistry;

    #[test]
    fn all_can_be_registered_together() {
        let registry = ToolRegistry::of(all().into_iter().chain(test_tools("effects"))).unwrap();
        assert_eq!(
            registry.names(),
            [
                "calculate",
                "current_time",
                "test_hostile",
                "test_idempotent",
                "test_once",
                "test_read",
                "work_plan"
            ]
        );
    }
}
