//! Texts about checkpoints, and about the claim of the call that makes one.

use chrono::{DateTime, Utc};
use everturn_proto::words::CheckpointType;
use serde::Serialize;
use sqlx::types::Json as Column;

use super::{
    super::dialect::{list, words},
    SqlText, Statement,
};
use crate::{api::StepKey, batch::checkpoint_id};

/// `$1` agent execution, `$2` conversation, `$3` step, `$4` status running, `$5` type `llm_complete`, `$6` epoch of the
/// run, `$7` worker or ''. It is one statement, so that a call that has ended is never paid again, and a generation is never given twice
/// (invariant 5, paid once). Returns the generation, the number of calls of the step, whether an earlier step is not saved
/// with all of its tools, the log that it is saved in, and the response that was noted last.
pub(crate) const CLAIM_STEP: &str = concat!(
    "UPDATE agent_executions SET generation = generation + 1, called_step = $3, \
     step_calls = CASE WHEN called_step = $3 THEN step_calls + 1 ELSE 1 END, worker_id = $7 \
     WHERE id = $1 AND conversation_id = $2 AND status = $4 AND ",
    run_is_newest!("$2", "$6"),
    " AND NOT EXISTS \
     (SELECT 1 FROM execution_checkpoints WHERE agent_execution_id = $1 AND step_number = $3 \
      AND checkpoint_type = $5 AND execution_id = '') RETURNING generation, step_calls, (steps < $3 OR EXISTS \
     (SELECT 1 FROM tool_execution_records r WHERE r.agent_execution_id = agent_executions.id AND r.step = $3 - 1 \
      AND r.observed_sequence IS NULL)) AS is_ahead, (SELECT ",
    log_id!(),
    " FROM conversations WHERE conversations.id = $2) AS log_id, background_response"
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

/// `$1` agent execution, `$2` step, `$3` type.
pub(crate) const CHECKPOINT: &str = "SELECT execution_state FROM execution_checkpoints \
     WHERE agent_execution_id = $1 AND step_number = $2 AND checkpoint_type = $3 AND execution_id = ''";

/// `$1` agent execution, `$2` type `llm_complete`.
pub(crate) const TOTALS: &str = "SELECT COUNT(*) AS calls, \
     CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens, \
     CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens \
     FROM execution_checkpoints WHERE agent_execution_id = $1 AND checkpoint_type = $2";

/// The first row wins. The clause names no key, so that PostgreSQL waits for another writer of the same checkpoint at
/// each of the table's two keys: at a key that a clause does not name, it reports a conflict instead.
const INSERT_CHECKPOINT: &str = insert_checkpoint!(
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
);

/// As [`INSERT_CHECKPOINT`], unless the conversation has one of the call ids in the list `$13`.
const INSERT_REPLY: SqlText = among!(
    insert_checkpoint!(
        "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 WHERE NOT EXISTS \
         (SELECT 1 FROM tool_execution_records WHERE conversation_id = $2 AND call_id"
    ),
    "$13",
    ") ON CONFLICT DO NOTHING"
);

/// `$1` id, `$2` generation, `$3` input tokens, `$4` output tokens, `$5` now, `$6` state. The newest generation wins.
const REPLACE_CHECKPOINT: &str = "UPDATE execution_checkpoints SET generation = $2, input_tokens = $3, \
     output_tokens = $4, created_at = $5, execution_state = $6 WHERE id = $1 AND generation <= $2";

/// A row of `execution_checkpoints`.
pub(crate) struct CheckpointRow<'a, S> {
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

impl<S: Serialize> CheckpointRow<'_, S> {
    /// Inserts the row unless there is one already.
    pub(crate) fn insert(&self) -> Statement {
        self.bound(INSERT_CHECKPOINT)
    }

    /// Inserts the row unless there is one already, or the conversation has one of these call ids.
    pub(crate) fn insert_unless_used(&self, call_ids: &[String]) -> Statement {
        self.bound(words(INSERT_REPLY)).bind(list(call_ids))
    }

    fn bound(&self, text: &'static str) -> Statement {
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

    /// Replaces the row that is there, unless that one is of a newer generation.
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
