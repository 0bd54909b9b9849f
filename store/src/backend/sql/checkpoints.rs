//! Texts about checkpoints, and about the claim of a checkpoint's model call.

use chrono::{DateTime, Utc};
use everturn_proto::words::CheckpointType;
use serde::Serialize;
use sqlx::types::Json as Column;

use super::{SqlText, Statement};
use crate::{api::StepKey, batch::checkpoint_id};

/// `$1` agent execution, `$2` conversation, `$3` step, `$4` status running, `$5` type `llm_complete`, `$6` epoch of the
/// run, `$7` worker or ''. A single statement claims, so that a finished call is never paid again and a generation is
/// never given twice (invariant 5, paid once). Returns the generation, the number of the step's calls, whether an
/// earlier step is not saved with all its tools, the log, the tenant, whether the turn has a budget, whether an earlier
/// call with a reservation was cut, the last noted response, and the position in the model chain.
pub(crate) const CLAIM_STEP: &str = concat!(
    "UPDATE agent_executions SET generation = generation + 1, called_step = $3, \
     step_calls = CASE WHEN called_step = $3 THEN step_calls + 1 ELSE 1 END, worker_id = $7 \
     WHERE id = $1 AND conversation_id = $2 AND status = $4 AND ",
    run_is_newest!("$2", "$6"),
    " AND NOT EXISTS \
     (SELECT 1 FROM execution_checkpoints WHERE agent_execution_id = $1 AND step_number = $3 \
      AND checkpoint_type = $5 AND execution_id = '') RETURNING generation, step_calls, (steps < $3 OR EXISTS \
     (SELECT 1 FROM tool_execution_records r WHERE r.agent_execution_id = agent_executions.id AND r.step = $3 - 1 \
      AND r.observed_sequence IS NULL)) AS is_ahead, (SELECT log_id FROM conversations WHERE conversations.id = $2) AS log_id, \
     (SELECT tenant_id FROM conversations WHERE conversations.id = $2) AS tenant_id, EXISTS (SELECT 1 FROM conversation_budgets b \
      WHERE b.conversation_id = $2 AND b.turn_id = agent_executions.root_execution_id) AS has_budget, \
      reserved_tokens > 0 AS was_cut, background_response, model_chain"
);

/// `$1` agent execution, `$2` conversation, `$3` generation.
pub(crate) const RELEASE_STEP: &str = "UPDATE agent_executions SET step_calls = step_calls - 1 \
     WHERE id = $1 AND conversation_id = $2 AND generation = $3 AND step_calls > 0";

/// `$1` agent execution, `$2` conversation, `$3` generation, `$4` status running, `$5` epoch of the run, `$6` response.
pub(crate) const NOTE_RESPONSE: &str = concat!(
    "UPDATE agent_executions SET background_response = $6 \
     WHERE id = $1 AND conversation_id = $2 AND generation = $3 AND status = $4 AND ",
    run_is_newest!("$2", "$5"),
);

/// `$1` agent execution, `$2` conversation, `$3` generation, `$4` status running, `$5` epoch of the run, `$6` position
/// in the chain, `$7` number of calls that count, `$8` whether another model is called next.
pub(crate) const NOTE_FAILED_CALL: &str = concat!(
    "UPDATE agent_executions SET model_chain = $6, step_calls = $7, \
     background_response = CASE WHEN $8 THEN NULL ELSE background_response END \
     WHERE id = $1 AND conversation_id = $2 AND generation = $3 AND status = $4 AND ",
    run_is_newest!("$2", "$5"),
);

/// `$1` agent execution, `$2` step, `$3` type.
pub(crate) const CHECKPOINT: &str = "SELECT execution_state FROM execution_checkpoints \
     WHERE agent_execution_id = $1 AND step_number = $2 AND checkpoint_type = $3 AND execution_id = ''";

/// Selects an agent execution and its descendants. The search reads only the few agent executions of the turn.
macro_rules! below {
    ($execution:literal) => {
        concat!(
            "WITH RECURSIVE below AS (SELECT id, root_execution_id FROM agent_executions WHERE id = ",
            $execution,
            " UNION ALL SELECT s.id, s.root_execution_id FROM below JOIN agent_executions s \
             ON s.parent_execution_id = below.id AND s.root_execution_id = \
             (SELECT root_execution_id FROM agent_executions WHERE id = ",
            $execution,
            ")) SELECT id FROM below"
        )
    };
}

macro_rules! all_totals {
    ($before:literal, $after:literal) => {
        concat!(
            "SELECT t.*, COALESCE((SELECT reserved_tokens > 0 FROM agent_executions WHERE id = $1), FALSE) AS has_reserved \
             FROM (",
            totals!("$1", "$2", of: $before, below!("$1"), $after),
            ") AS t"
        )
    };
}

/// `$1` agent execution, `$2` type `llm_complete`. Selects the [`Totals`](crate::batch::Totals), and whether the agent
/// execution has a reservation.
pub(crate) const TOTALS: SqlText = SqlText {
    sqlite: all_totals!("IN (", ")"),
    postgres: all_totals!("= ANY(ARRAY(", "))"),
};

/// The first row wins. The clause `ON CONFLICT` names no key. With a named key, PostgreSQL would wait for a concurrent
/// writer only at that key, and would report a conflict at the table's second key.
const INSERT_CHECKPOINT: &str = insert_checkpoint!(
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
);

/// Inserts the row of [`INSERT_CHECKPOINT`], with `$13` cached, `$14` cache write and `$15` reasoning tokens and `$16`
/// nano-USD, unless the conversation has one of the call ids in the list `$17`.
///
/// PostgreSQL also counts the call in the same statement, with `$18` day, `$19` model, `$20` slot, and settles its
/// reservation, with `$21` tokens and `$22` nano-USD actually used. A step of hooks has generation 0 (`$8`), and is not
/// counted as a call. The statement returns the number of inserted rows. The day comes last, in the order of locks.
pub(crate) const INSERT_REPLY: SqlText = SqlText {
    sqlite: insert_reply!(
        "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16 WHERE NOT EXISTS \
         (SELECT 1 FROM tool_execution_records WHERE conversation_id = $2 \
          AND call_id IN (SELECT value FROM json_each($17))) ON CONFLICT DO NOTHING"
    ),
    postgres: concat!(
        "WITH reply AS (",
        insert_reply!(
            "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16 WHERE NOT EXISTS \
             (SELECT 1 FROM tool_execution_records WHERE conversation_id = $2 AND call_id = ANY($17)) \
             ON CONFLICT DO NOTHING RETURNING conversation_id"
        ),
        "), settled AS (",
        settle!(
            execution: "$4", conversation: "$2", tokens: "$21", nano: "$22",
            if: " AND EXISTS (SELECT 1 FROM reply)", lock: " FOR NO KEY UPDATE OF e"
        ),
        " RETURNING b.conversation_id), freed AS (UPDATE agent_executions SET reserved_tokens = 0, reserved_nano = 0 \
         WHERE id = $4 AND EXISTS (SELECT 1 FROM settled)), day AS (",
        add_to_day!(
            "SELECT c.tenant_id, $18, $19, $20, 1, $9, $10, $13, $14, $15, COALESCE($16, 0), 0, 0, 0 \
             FROM reply JOIN conversations c ON c.id = reply.conversation_id \
             WHERE $8 > 0 AND (SELECT COUNT(*) FROM settled) < 2"
        ),
        ") SELECT COUNT(*) FROM reply"
    ),
};

/// `$1` id, `$2` generation, `$3` input tokens, `$4` output tokens, `$5` now, `$6` state. The newest generation wins.
const REPLACE_CHECKPOINT: &str = "UPDATE execution_checkpoints SET generation = $2, input_tokens = $3, \
     output_tokens = $4, created_at = $5, execution_state = $6 WHERE id = $1 AND generation <= $2";

/// A row of `execution_checkpoints`.
pub(crate) struct CheckpointRow<'a, S> {
    pub(crate) step: &'a StepKey,
    pub(crate) checkpoint_type: CheckpointType,
    /// The tool execution of a tool's checkpoint.
    pub(crate) execution_id: Option<&'a str>,
    /// The generation of an LLM call, or the attempt of a tool.
    pub(crate) generation: u32,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) now: DateTime<Utc>,
    pub(crate) state: &'a S,
}

impl<S: Serialize> CheckpointRow<'_, S> {
    /// Inserts the row unless the checkpoint exists.
    pub(crate) fn insert(&self) -> Statement {
        self.bound(INSERT_CHECKPOINT)
    }

    /// Binds the row to a text whose first parameters are the row's, `$1` to `$12`.
    pub(crate) fn bound(&self, text: &'static str) -> Statement {
        let StepKey {
            conversation_id,
            message_id,
            agent_execution_id,
            step,
            ..
        } = self.step;
        sqlx::query(text)
            .bind(self.id())
            .bind(conversation_id)
            .bind(message_id)
            .bind(agent_execution_id)
            .bind(self.checkpoint_type.as_str())
            .bind(self.execution_id.unwrap_or_default())
            .bind(i64::from(*step))
            .bind(i64::from(self.generation))
            .bind(i64::from(self.input_tokens))
            .bind(i64::from(self.output_tokens))
            .bind(self.now)
            .bind(Column(self.state))
    }

    /// Replaces the existing row, unless the existing row has a newer generation.
    pub(crate) fn replace(&self) -> Statement {
        sqlx::query(REPLACE_CHECKPOINT)
            .bind(self.id())
            .bind(i64::from(self.generation))
            .bind(i64::from(self.input_tokens))
            .bind(i64::from(self.output_tokens))
            .bind(self.now)
            .bind(Column(self.state))
    }

    fn id(&self) -> String {
        let StepKey {
            agent_execution_id,
            step,
            ..
        } = self.step;
        checkpoint_id(
            agent_execution_id,
            *step,
            &self.checkpoint_type,
            self.execution_id,
        )
    }
}
