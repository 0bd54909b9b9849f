//! Budgets. A model call reserves its estimated cost before the call, and the answer settles the actual cost.
//!
//! - `reserve` lets a call through, or names the exceeded limit. Reserving takes one round trip.
//! - The statement that stores the answer also settles (`checkpoints/insert_reply.postgres.sql`); SQLite settles with
//!   [`settle`].
//! - A cut call counts with its full reservation, because the provider probably billed it. The cut call is settled when
//!   its step is claimed again ([`count_cut`]), or when its agent execution ends ([`free_at_end`]).
//! - A call of a turn without a budget reserves nothing. After a failure, the worker notes the possible usage
//!   ([`note_unanswered_call`]). After the death of a worker, the claim without a reply is the only trace, and the store
//!   estimates the usage ([`OpenCallRow`]).
//!
//! Locks are taken in this order: the agent execution's row, the conversation's budget, the tenant's day. Other code
//! keeps to the order too: after locking a row of the list, no code takes an earlier row. Therefore transactions never
//! deadlock.

use chrono::{DateTime, Utc};
use everturn_proto::{
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, CheckpointType},
};

use super::{
    Connection,
    dialect::{Parts, WRITES_IN_PARTS},
    statement::Statement as _,
    statements::budgets::{
        AddCall, AddCutCall, BeginBudget, Budget, Free, LockOpenCall, NoteFreed, NoteReserved,
        NoteSettled, NoteUnansweredCall, Reserve, Settle,
    },
};
use crate::{
    api::{BeginTurn, CutCall, DayBudget, Estimate, Reservation, Result, StepKey},
    columns::{now, wide},
    error::StoreError,
    rows::budgets::{BudgetRow, OpenCallRow, model_name},
};

/// Rows per day, model and agent, and rows of a tenant's list in `list_changes`. A statement locks a row until the
/// statement's commit.
const SLOTS: u32 = 16;
/// How often a refused reservation is repeated when the budget has changed meanwhile.
const TRIES: u32 = 3;
/// Stands for every generation of an agent execution.
const EVERY_GENERATION: u32 = u32::MAX;

/// Returns the day of `at`, in UTC.
pub(super) fn day(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d").to_string()
}

/// Returns the slot of an agent execution or of a conversation.
pub(super) fn slot(id: &str) -> i64 {
    let bytes = id.bytes();
    let hash = bytes.fold(0_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    i64::from(hash % SLOTS)
}

/// Adds the budget of a turn, if the turn has a limit.
pub(crate) fn begin(parts: &mut Parts, turn: &BeginTurn) {
    let budget = turn.agent.budget.unwrap_or_default();
    let DayBudget { tokens, nano_usd } = turn.tenant_budget;
    let begin = BeginBudget {
        conversation_id: &turn.conversation_id,
        turn_id: &turn.agent_execution_id,
        max_steps: budget.steps.map(i64::from),
        max_tokens: budget.tokens.map(wide),
        max_nano: budget.nano_usd.map(wide),
        max_conversation_tokens: budget.conversation_tokens.map(wide),
        max_conversation_nano: budget.conversation_nano_usd.map(wide),
        max_day_tokens: tokens.map(wide),
        max_day_nano: nano_usd.map(wide),
    };
    let limits = [
        begin.max_steps,
        begin.max_tokens,
        begin.max_nano,
        begin.max_conversation_tokens,
        begin.max_conversation_nano,
        begin.max_day_tokens,
        begin.max_day_nano,
    ];
    if limits.iter().any(Option::is_some) {
        parts.add(begin);
    }
}

/// Reserves a share of the budget for a model call, or returns the exceeded limit. A repeated request for the call is
/// harmless.
pub(super) async fn reserve(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    call: Estimate,
    other_model: Option<&str>,
) -> Result<Reservation> {
    for _ in 0..TRIES {
        if has_reserved(connection, step, generation, call, other_model).await? {
            return Ok(Reservation::Made);
        }
        let select = Budget {
            agent_execution_id: &step.agent_execution_id,
            conversation_id: &step.conversation_id,
            day: &day(now()),
        };
        let budget: Option<BudgetRow> = select.query_as()?.fetch_optional(&mut *connection).await?;
        let id = &step.agent_execution_id;
        let running = AgentExecutionStatus::Running;
        let budget = budget.ok_or_else(|| {
            StoreError::Conflict(format!(
                "agent execution `{id}` is not {running}, or has no budget"
            ))
        })?;
        if budget.has_reserved(step.step, generation) {
            return Ok(Reservation::Made);
        }
        if !budget.is_of(generation) {
            return Err(StoreError::Superseded {
                agent_execution_id: id.clone(),
                generation,
            });
        }
        match budget.decide(step.step, call) {
            // Another call has freed a share of the budget in between.
            Reservation::Made => {}
            exhausted @ Reservation::Exhausted(_) => return Ok(exhausted),
        }
    }
    let why = "a budget changed again and again while a call asked for a part of it";
    Err(StoreError::Unavailable(why.into()))
}

async fn has_reserved(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    call: Estimate,
    other_model: Option<&str>,
) -> Result<bool> {
    let (tokens, nano) = (wide(call.tokens.max(1)), wide(call.nano_usd));
    let reserve = Reserve {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        generation: i64::from(generation),
        step: i64::from(step.step),
        tokens,
        nano,
        day: &day(now()),
        reserved_model: other_model,
    };
    let done = reserve.query()?.execute(&mut *connection).await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    if !WRITES_IN_PARTS {
        let note = NoteReserved {
            agent_execution_id: &step.agent_execution_id,
            step: i64::from(step.step),
            tokens,
            nano,
            reserved_model: other_model,
        };
        note.query()?.execute(connection).await?;
    }
    Ok(true)
}

/// Notes the end of a call without a reply, in a turn without a budget.
pub(super) async fn note_unanswered_call(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
    cut: Option<&CutCall>,
) -> Result<()> {
    let note = NoteUnansweredCall {
        agent_execution_id: &step.agent_execution_id,
        conversation_id: &step.conversation_id,
        generation: i64::from(generation),
        tokens: cut.map_or(0, |cut| wide(cut.most.tokens.max(1))),
        nano: cut.map_or(0, |cut| wide(cut.most.nano_usd)),
        reserved_model: cut.and_then(|cut| cut.other_model.as_deref()),
    };
    note.query()?.execute(connection).await?;
    Ok(())
}

/// Settles the call of a reply that was just stored, and adds the call to the tenant's sums. PostgreSQL settles in the
/// statement that stores the reply.
pub(super) async fn settle(
    connection: &mut Connection,
    step: &StepKey,
    state: &LlmCompleteState,
) -> Result<()> {
    let id = &step.agent_execution_id;
    let settle = Settle {
        agent_execution_id: id,
        conversation_id: &step.conversation_id,
        used_tokens: tokens_of(state),
        used_nano: nano_of(state).unwrap_or_default(),
    };
    settle.query()?.execute(&mut *connection).await?;
    let note = NoteFreed {
        agent_execution_id: id,
    };
    note.query()?.execute(&mut *connection).await?;
    if state.calls() == 0 {
        return Ok(());
    }
    let add = AddCall {
        conversation_id: &step.conversation_id,
        agent_execution_id: id,
        day: &day(now()),
        model: &model_name(&state.provider, &state.model),
        slot: slot(id),
        input_tokens: i64::from(state.input_tokens),
        output_tokens: i64::from(state.output_tokens),
        cached_tokens: i64::from(state.cached_tokens),
        cache_write_tokens: i64::from(state.cache_write_tokens),
        reasoning_tokens: i64::from(state.reasoning_tokens),
        cost_nano: nano_of(state).unwrap_or_default(),
        estimated_calls: i64::from(state.is_estimated),
    };
    add.query()?.execute(connection).await?;
    Ok(())
}

/// Returns the tokens of a reply.
pub(super) fn tokens_of(state: &LlmCompleteState) -> i64 {
    i64::from(state.input_tokens) + i64::from(state.output_tokens)
}

/// Returns the cost of a reply.
pub(super) fn nano_of(state: &LlmCompleteState) -> Option<i64> {
    state.cost_nano_usd.map(wide)
}

/// The outcome of a call without an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freed {
    /// The call was cut. The full reservation counts as used.
    Cut,
    /// The provider refused the call and charges no cost.
    Refused,
}

/// Settles an agent execution's call without an answer, in the caller's transaction. `last_claimed` is the newest
/// generation, `last_called` the newest generation with a call. Without such a call, or after a newer claim, no row
/// changes.
async fn settle_unanswered(
    connection: &mut Connection,
    step: &StepKey,
    (last_called, last_claimed): (u32, u32),
    how: Freed,
) -> Result<()> {
    let (conversation_id, id) = (&step.conversation_id, &step.agent_execution_id);
    let lock = LockOpenCall {
        agent_execution_id: id,
        conversation_id,
        last_generation: i64::from(last_claimed),
        type_llm_complete: CheckpointType::LlmComplete.as_str(),
    };
    let found: Option<OpenCallRow> = lock.query_as()?.fetch_optional(&mut *connection).await?;
    let Some(row) = found else { return Ok(()) };
    let Some(call) = row.unanswered(last_called) else {
        return Ok(());
    };
    let is_cut = how == Freed::Cut;
    let taken = |reserved: i64| if is_cut { reserved } else { 0 };
    let free = Free {
        conversation_id,
        turn_id: &row.root_execution_id,
        freed_tokens: row.reserved_tokens,
        freed_nano: row.reserved_nano,
        used_tokens: taken(row.reserved_tokens),
        used_nano: taken(row.reserved_nano),
    };
    free.query()?.execute(&mut *connection).await?;
    let note = NoteSettled {
        agent_execution_id: id,
        settled_generation: row.generation.min(i64::from(last_called)),
        cut_calls: i64::from(is_cut),
        cut_tokens: if is_cut { call.tokens } else { 0 },
        cut_nano: if is_cut { call.nano } else { 0 },
    };
    note.query()?.execute(&mut *connection).await?;
    if is_cut {
        let add = AddCutCall {
            conversation_id,
            agent_execution_id: id,
            day: &day(now()),
            model: &call.model,
            slot: slot(id),
            cut_tokens: call.tokens,
            cut_nano: call.nano,
        };
        add.query()?.execute(connection).await?;
    }
    Ok(())
}

/// Counts the call before the claim `generation` as cut.
pub(super) async fn count_cut(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
) -> Result<()> {
    let generations = (generation.saturating_sub(1), generation);
    settle_unanswered(connection, step, generations, Freed::Cut).await
}

/// Gives back the reservation of a call that the provider refused.
pub(super) async fn release(
    connection: &mut Connection,
    step: &StepKey,
    generation: u32,
) -> Result<()> {
    settle_unanswered(connection, step, (generation, generation), Freed::Refused).await
}

/// Counts the call of an agent execution that ends, if the call has no answer.
pub(super) async fn free_at_end(connection: &mut Connection, step: &StepKey) -> Result<()> {
    let generations = (EVERY_GENERATION, EVERY_GENERATION);
    settle_unanswered(connection, step, generations, Freed::Cut).await
}
