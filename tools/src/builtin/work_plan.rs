//! `work_plan`: a plan that the agent makes for itself, and its progress, shown to the user as events.
//!
//! The tool has no state: the plan consists of the events. The plan's id derives from the creating tool execution, so
//! that a retry names the same plan. A plan step is an item of the plan, not a step of the turn.

use everturn_proto::words::Effect;
use everturn_proto::{
    event::{PlanStepEnd, PlanStepStart, WorkPlan as WorkPlanEvent, WorkPlanStep},
    words::{EventType, PlanStepStatus},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{context::ToolContext, error::ToolError, events::ToolEvents, typed::TypedTool};

/// The most steps of a plan that a person can follow.
const MAX_STEPS: usize = 50;
const MAX_TEXT_CHARS: usize = 500;

/// The tool `work_plan`.
pub struct WorkPlan;

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    action: Action,
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    title: Option<String>,
    /// create: what is to be done, one step each, in order.
    #[schemars(length(min = 1, max = MAX_STEPS), inner(length(min = 1, max = MAX_TEXT_CHARS)))]
    steps: Option<Vec<String>>,
    /// start_step, end_step: the id that create returned.
    plan_id: Option<String>,
    /// start_step, end_step: counted from 1.
    #[schemars(range(min = 1, max = MAX_STEPS))]
    step_number: Option<u32>,
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    description: Option<String>,
    /// end_step: how the step ended; completed when left out.
    status: Option<EndStatus>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    StartStep,
    EndStep,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EndStatus {
    #[default]
    Completed,
    Failed,
}

impl From<EndStatus> for PlanStepStatus {
    fn from(status: EndStatus) -> Self {
        match status {
            EndStatus::Completed => Self::Completed,
            EndStatus::Failed => Self::Failed,
        }
    }
}

/// The part of the plan that the call has changed.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Output {
    /// The whole plan.
    Created(WorkPlanEvent),
    /// A plan step that began or ended.
    Step(PlanStepEnd),
}

impl TypedTool for WorkPlan {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "work_plan";
    const DESCRIPTION: &'static str = "Shows the user a plan and how it goes. First `create` with title and steps; then \
                                       `start_step` and `end_step` for each step as you work on it.";
    const TITLE: Option<&'static str> = Some("Update the plan");
    const EFFECT: Effect = Effect::Idempotent;
    const INLINE: bool = true;

    async fn run(&self, context: ToolContext, input: Input) -> Result<Output, ToolError> {
        match input.action {
            Action::Create => create(&context, input).map(Output::Created),
            Action::StartStep => start_step(&context.events, input).map(Output::Step),
            Action::EndStep => end_step(&context.events, input).map(Output::Step),
        }
    }
}

fn create(context: &ToolContext, input: Input) -> Result<WorkPlanEvent, ToolError> {
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
    let step = |(number, description): (u32, String)| WorkPlanStep {
        step_number: number,
        description,
        status: PlanStepStatus::Pending.into(),
    };
    let plan = WorkPlanEvent {
        plan_id: format!("plan_{}", context.execution_id.trim_start_matches("exec_")),
        title,
        steps: (1..).zip(steps).map(step).collect(),
    };
    context.events.emit(EventType::WorkPlan, &plan)?;
    Ok(plan)
}

fn start_step(events: &ToolEvents, input: Input) -> Result<PlanStepEnd, ToolError> {
    let (plan_id, step_number) = step_of(&input)?;
    let start = PlanStepStart {
        plan_id: plan_id.clone(),
        step_number,
        description: input.description.unwrap_or_default(),
    };
    events.emit(EventType::PlanStepStart, &start)?;
    Ok(PlanStepEnd {
        plan_id,
        step_number,
        status: PlanStepStatus::Running.into(),
    })
}

fn end_step(events: &ToolEvents, input: Input) -> Result<PlanStepEnd, ToolError> {
    let (plan_id, step_number) = step_of(&input)?;
    let status = PlanStepStatus::from(input.status.unwrap_or_default());
    let end = PlanStepEnd {
        plan_id,
        step_number,
        status: status.into(),
    };
    events.emit(EventType::PlanStepEnd, &end)?;
    Ok(end)
}

/// Returns the plan and the plan step of a call.
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
            "`plan_id` must be the id from create: plan_ and 12 hex digits.".into(),
        ));
    }
    Ok((plan_id.clone(), step_number))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{checked::CheckedTool, testing, typed::typed};

    async fn run(input: Value) -> Result<(Value, Vec<(String, Value)>), String> {
        testing::call(&CheckedTool::new(typed(WorkPlan)).unwrap(), input).await
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
        // A retry is the same tool execution and makes the same plan.
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
