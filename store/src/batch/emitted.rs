//! Events that tools emit themselves. An event about a work plan also changes the plan's row.

use everturn_proto::{
    Json,
    event::{PlanStepEnd, PlanStepStart, WorkPlan},
    words::{EventType, PlanStepStatus},
};

use super::builder::Builder;

impl Builder<'_> {
    /// Appends an event of a tool's end, unless the type belongs to another part of the turn.
    pub(super) fn emitted(&mut self, event_type: &EventType, data: &Json) {
        if !event_type.may_be_in_tool_end() {
            return;
        }
        let message_id = &self.step().message_id;
        self.append(message_id, event_type.clone(), data.clone());
        // Data of a wrong shape is a tool's mistake: readers see the event, and the plan stays unchanged.
        match event_type {
            EventType::WorkPlan => {
                if let Ok(plan) = data.decode() {
                    self.work_plan(plan);
                }
            }
            EventType::PlanStepStart => {
                if let Ok(start) = data.decode::<PlanStepStart>() {
                    self.plan_step(&start.plan_id, start.step_number, PlanStepStatus::Running);
                }
            }
            EventType::PlanStepEnd => {
                if let Ok(end) = data.decode::<PlanStepEnd>() {
                    self.plan_step(&end.plan_id, end.step_number, end.status.into());
                }
            }
            _ => {}
        }
    }

    fn work_plan(&mut self, plan: WorkPlan) {
        let mut known = self.batch.plans.iter_mut();
        match known.find(|known| known.plan_id == plan.plan_id) {
            Some(known) => *known = plan,
            None => self.batch.plans.push(plan),
        }
    }

    fn plan_step(&mut self, plan_id: &str, step_number: u32, status: PlanStepStatus) {
        let plans = &mut self.batch.plans;
        if !plans.iter().any(|plan| plan.plan_id == plan_id) {
            let mut stored = self.snapshot.plans.iter();
            plans.extend(stored.find(|plan| plan.plan_id == plan_id).cloned());
        }
        let plan = plans.iter_mut().find(|plan| plan.plan_id == plan_id);
        let mut steps = plan.into_iter().flat_map(|plan| &mut plan.steps);
        if let Some(step) = steps.find(|step| step.step_number == step_number) {
            step.status = status.into();
        }
    }
}

/// Returns the id of the stored work plan that a tool's event changes; `None` for an event that needs no stored plan.
pub(super) fn changed_plan(event_type: &EventType, data: &Json) -> Option<String> {
    match event_type {
        EventType::PlanStepStart => data
            .decode::<PlanStepStart>()
            .ok()
            .map(|start| start.plan_id),
        EventType::PlanStepEnd => data.decode::<PlanStepEnd>().ok().map(|end| end.plan_id),
        _ => None,
    }
}
