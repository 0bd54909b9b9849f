//! `work_plan`: a plan the agent makes for itself, and its progress, shown to the user as events.
//!
//! The tool keeps nothing: the events are the plan. The plan's id comes from the execution that created it, so
//! that a retry names the same plan.

use async_trait::async_trait;
use everturn_proto::{
    Json,
    event::{PlanStepEnd, PlanStepStart, WorkPlan as WorkPlanEvent, WorkPlanStep},
    words::EventType,
};
use serde::Deserialize;
use serde_json::json;

use super::read;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// Steps of one plan; more is no plan a person can follow.
const MAX_STEPS: usize = 50;
const MAX_TEXT_CHARS: usize = 500;

/// The tool `work_plan`.
pub struct WorkPlan {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Input {
    action: Action,
    title: Option<String>,
    steps: Option<Vec<String>>,
    plan_id: Option<String>,
    step_number: Option<u32>,
    description: Option<String>,
    status: Option<EndStatus>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    StartStep,
    EndStep,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum EndStatus {
    Completed,
    Failed,
}

impl EndStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl WorkPlan {
    /// The tool.
    pub fn new() -> Self {
        let text = json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS});
        let parameters = json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["create", "start_step", "end_step"]},
                "title": text,
                "steps": {
                    "type": "array",
                    "items": text,
                    "minItems": 1,
                    "maxItems": MAX_STEPS,
                    "description": "create: what is to be done, one step each, in order.",
                },
                "plan_id": {"type": "string", "description": "start_step, end_step: the id that create returned."},
                "step_number": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_STEPS,
                    "description": "start_step, end_step: counted from 1.",
                },
                "description": text,
                "status": {
                    "type": "string",
                    "enum": ["completed", "failed"],
                    "description": "end_step: how the step ended; completed when left out.",
                },
            },
            "required": ["action"],
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: "work_plan".into(),
            description:
                "Shows the user a plan and how it goes. First `create` with title and steps; then \
                          `start_step` and `end_step` for each step as you work on it."
                    .into(),
            parameters,
            effect: Effect::Idempotent,
        };
        Self { spec }
    }
}

impl Default for WorkPlan {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for WorkPlan {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<ToolOutput, ToolError> {
        let input: Input = read(&input)?;
        match input.action {
            Action::Create => create(&context.execution_id, input),
            Action::StartStep => start_step(input),
            Action::EndStep => end_step(&input),
        }
    }
}

fn create(execution_id: &str, input: Input) -> Result<ToolOutput, ToolError> {
    let (Some(title), Some(steps)) = (input.title, input.steps) else {
        return Err(ToolError::Failed(
            "To create a plan give `title` and `steps`.".into(),
        ));
    };
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(ToolError::Failed(format!(
            "A plan has 1 to {MAX_STEPS} steps."
        )));
    }
    let plan_id = format!("plan_{}", execution_id.trim_start_matches("exec_"));
    let step = |(number, description): (u32, String)| WorkPlanStep {
        step_number: number,
        description,
        status: "pending".into(),
    };
    let plan = WorkPlanEvent {
        plan_id,
        title,
        steps: (1..).zip(steps).map(step).collect(),
    };
    Ok(ToolOutput {
        result: Json::of(&plan),
        events: vec![(EventType::WorkPlan, Json::of(&plan))],
    })
}

fn start_step(input: Input) -> Result<ToolOutput, ToolError> {
    let (plan_id, step_number) = step_of(&input)?;
    let result = json!({"plan_id": plan_id, "step_number": step_number, "status": "running"});
    let event = PlanStepStart {
        plan_id,
        step_number,
        description: input.description.unwrap_or_default(),
    };
    Ok(ToolOutput {
        result: Json::of(&result),
        events: vec![(EventType::PlanStepStart, Json::of(&event))],
    })
}

fn end_step(input: &Input) -> Result<ToolOutput, ToolError> {
    let (plan_id, step_number) = step_of(input)?;
    let status = input
        .status
        .unwrap_or(EndStatus::Completed)
        .as_str()
        .to_owned();
    let event = PlanStepEnd {
        plan_id,
        step_number,
        status,
    };
    Ok(ToolOutput {
        result: Json::of(&event),
        events: vec![(EventType::PlanStepEnd, Json::of(&event))],
    })
}

/// The plan and the step a call is about.
fn step_of(input: &Input) -> Result<(String, u32), ToolError> {
    let (Some(plan_id), Some(step_number)) = (&input.plan_id, input.step_number) else {
        return Err(ToolError::Failed(
            "Give `plan_id`, as create returned it, and `step_number`.".into(),
        ));
    };
    let is_ours = plan_id
        .strip_prefix("plan_")
        .is_some_and(|hex| hex.len() == 12 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !is_ours {
        return Err(ToolError::Failed(
            "`plan_id` must be the one that create returned: plan_ and 12 hex digits.".into(),
        ));
    }
    Ok((plan_id.clone(), step_number))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::tools::{CheckedTool, builtin::testing::context};

    async fn run(input: Value) -> Result<(Value, Vec<(String, Value)>), String> {
        let checked = CheckedTool::new(std::sync::Arc::new(WorkPlan::new())).unwrap();
        checked.validate(&Json::of(&input))?;
        let output = checked
            .tool()
            .run(context(), Json::of(&input))
            .await
            .map_err(|error| error.to_string())?;
        let events = output
            .events
            .iter()
            .map(|(event_type, data)| (event_type.to_string(), data.to_value()))
            .collect();
        Ok((output.result.to_value(), events))
    }

    #[tokio::test]
    async fn create_emits_the_plan() {
        let input = json!({"action": "create", "title": "Trip", "steps": ["Book", "Pack"]});
        let plan = json!({
            "plan_id": "plan_0123456789ab",
            "title": "Trip",
            "steps": [
                {"step_number": 1, "description": "Book", "status": "pending"},
                {"step_number": 2, "description": "Pack", "status": "pending"},
            ],
        });
        // A retry has the same execution id and makes the same plan.
        for _ in 0..2 {
            assert_eq!(
                run(input.clone()).await.unwrap(),
                (plan.clone(), vec![("work_plan".into(), plan.clone())])
            );
        }
    }

    #[tokio::test]
    async fn steps_emit_their_start_and_end() {
        let (_, events) =
            run(json!({"action": "start_step", "plan_id": "plan_0123456789ab", "step_number": 2}))
                .await
                .unwrap();
        let data = json!({"plan_id": "plan_0123456789ab", "step_number": 2, "description": ""});
        assert_eq!(events, [("step_start".to_owned(), data)]);
        for (status, expected) in [
            (json!({}), "completed"),
            (json!({"status": "failed"}), "failed"),
        ] {
            let mut input =
                json!({"action": "end_step", "plan_id": "plan_0123456789ab", "step_number": 2});
            input
                .as_object_mut()
                .unwrap()
                .extend(status.as_object().unwrap().clone());
            let (_, events) = run(input).await.unwrap();
            let data =
                json!({"plan_id": "plan_0123456789ab", "step_number": 2, "status": expected});
            assert_eq!(events, [("step_end".to_owned(), data)]);
        }
    }

    #[tokio::test]
    async fn what_is_missing_is_said() {
        for (input, part) in [
            (
                json!({"action": "create", "title": "Trip"}),
                "`title` and `steps`",
            ),
            (
                json!({"action": "create", "title": "Trip", "steps": []}),
                "/steps",
            ),
            (json!({"action": "start_step"}), "`plan_id`"),
            (
                json!({"action": "start_step", "plan_id": "plan_x", "step_number": 1}),
                "12 hex digits",
            ),
            (
                json!({"action": "end_step", "plan_id": "plan_0123456789ab", "step_number": 0}),
                "/step_number",
            ),
            (json!({"action": "stop"}), "/action"),
        ] {
            let message = run(input).await.unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
