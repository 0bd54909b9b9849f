//! Texts about checkpoints, and about the claim of the call that makes one.

use chrono::{DateTime, Utc};
use everturn_proto::words::CheckpointType;
use serde::Serialize;
use sqlx::types::Json as Column;

use super::Statement;
use crate::{api::StepKey, batch::checkpoint_id};

/// `$1` agent execution, `$2` conversation, `$3` step, `$4` status running, `$5` type `llm_complete`. It is one
/// statement, so that a call that has ended is never paid again, and a generation is never given twice (invariant 5,
/// paid once).
pub(crate) const CLAIM_STEP: &str = "UPDATE agent_executions SET generation = generation + 1 \
     WHERE id = $1 AND conversation_id = $2 AND status = $4 AND NOT EXISTS \
     (SELECT 1 FROM execution_checkpoints WHERE agent_execution_id = $1 AND step_number = $3 \
      AND checkpoint_type = $5 AND execution_id = '') RETURNING generation";

/// `$1` agent execution, `$2` step, `$3` type.
pub(crate) const CHECKPOINT: &str = "SELECT execution_state FROM execution_checkpoints \
     WHERE agent_execution_id = $1 AND step_number = $2 AND checkpoint_type = $3 AND execution_id = ''";

/// `$1` agent execution, `$2` type `llm_complete`.
pub(crate) const TOTALS: &str = "SELECT COUNT(*) AS calls, \
     CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens, \
     CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens \
     FROM execution_checkpoints WHERE agent_execution_id = $1 AND checkpoint_type = $2";

macro_rules! insert_checkpoint {
    ($on_conflict:literal) => {
        concat!(
            "INSERT INTO execution_checkpoints (id, conversation_id, message_id, agent_execution_id, checkpoint_type, \
             execution_id, step_number, generation, input_tokens, output_tokens, created_at, execution_state) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
             ON CONFLICT (agent_execution_id, step_number, checkpoint_type, execution_id) DO ",
            $on_conflict
        )
    };
}

/// A row of `execution_checkpoints`.
pub(crate) struct InsertCheckpoint<'a, S> {
    pub(crate) step: &'a StepKey,
    pub(crate) checkpoint_type: CheckpointType,
    /// The tool execution, in a tool's checkpoint.
    pub(crate) execution_id: Option<&'a str>,
    /// The generation of an LLM call; in a tool's checkpoint, the attempt.
    pub(crate) generation: u32,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) now: DateTime<Utc>,
    pub(crate) state: &'a S,
}

impl<S: Serialize> InsertCheckpoint<'_, S> {
    /// Inserts the row unless there is one already: the first one wins.
    pub(crate) fn unless_stored(&self) -> Statement {
        self.statement(insert_checkpoint!("NOTHING"))
    }

    /// Inserts the row, or replaces the one that is there: the newest generation wins.
    pub(crate) fn or_replace(&self) -> Statement {
        self.statement(insert_checkpoint!(
            "UPDATE SET execution_state = excluded.execution_state, generation = excluded.generation, \
             input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, \
             created_at = excluded.created_at WHERE execution_checkpoints.generation <= excluded.generation"
        ))
    }

    fn statement(&self, text: &'static str) -> Statement {
        let StepKey {
            conversation_id,
            message_id,
            agent_execution_id,
            step,
        } = self.step;
        let (checkpoint_type, execution_id) = (&self.checkpoint_type, self.execution_id);
        let id = checkpoint_id(agent_execution_id, *step, checkpoint_type, execution_id);
        sqlx::query(text)
            .bind(id)
            .bind(conversation_id)
            .bind(message_id)
            .bind(agent_execution_id)
            .bind(checkpoint_type.as_str())
            .bind(execution_id.unwrap_or_default())
            .bind(i64::from(*step))
            .bind(i64::from(self.generation))
            .bind(i64::from(self.input_tokens))
            .bind(i64::from(self.output_tokens))
            .bind(self.now)
            .bind(Column(self.state))
    }
}
