//! The built-in tools.
//!
//! - [`calculate`]: exact arithmetic
//! - [`current_time`]: the time in any time zone
//! - [`read_result`]: the rest of a cut result
//! - [`find_tools`]: the agent's tools for which a request has no room
//! - [`work_plan`]: a plan that the agent makes and follows, shown to the user as events
//! - [`test_tool`], `hostile_tool`, `program_tool`: tools with behaviour controlled by a test; registered only on
//!   request
//!
//! All except `test_tool` are [`TypedTool`](super::TypedTool)s, like an operator's own tools. [`TestTool`] is a
//! [`Tool`](super::Tool), because one type has several names and effects. A new tool needs a file here and a line in
//! [`all`].

pub mod calculate;
pub mod current_time;
pub mod find_tools;
mod hostile_tool;
mod program_tool;
pub mod read_result;
pub mod test_tool;
pub mod work_plan;

use std::{path::PathBuf, sync::Arc};

pub use calculate::Calculate;
pub use current_time::CurrentTime;
use everturn_proto::words::Effect;
pub use find_tools::FindTools;
use hostile_tool::HostileTool;
use program_tool::ProgramTool;
pub use read_result::ReadResult;
pub use test_tool::TestTool;
pub use work_plan::WorkPlan;

use crate::{tool::Tool, typed::typed};

/// Returns the tools of every worker.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        typed(Calculate::default()),
        typed(CurrentTime::default()),
        typed(WorkPlan),
    ]
}

/// Returns tools for tests, one for every effect: `test_read`, `test_idempotent` and `test_once`, and `test_inline`,
/// which runs once and inline. They write effects as lines into `effect_file`. `test_hostile` misbehaves, and
/// `test_program` runs a program.
pub fn test_tools(effect_file: impl Into<PathBuf>) -> Vec<Arc<dyn Tool>> {
    let effect_file = effect_file.into();
    let tool = |name, effect| TestTool::new(name, effect, Some(effect_file.clone()));
    vec![
        Arc::new(tool("test_read", Effect::Read)) as Arc<dyn Tool>,
        Arc::new(tool("test_idempotent", Effect::Idempotent)),
        Arc::new(tool("test_once", Effect::Once)),
        Arc::new(tool("test_inline", Effect::Once).inline()),
        typed(HostileTool::new(effect_file.clone())),
        typed(ProgramTool),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::ToolRegistry;

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
                "test_inline",
                "test_once",
                "test_program",
                "test_read",
                "work_plan"
            ]
        );
    }
}
