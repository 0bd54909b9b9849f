//! Rows that tests store themselves: events of any kind, and the states in which a worker leaves a conversation.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{
    Json,
    event::Event,
    turn::ToolCall,
    words::{ApprovalState, OnBusy, ToolKind},
};
use everturn_store::{
    Access, ConversationChange, Conversations, EventLog, EventReader, MessageQueue,
    NewConversation, NewMessage, OutsideTool, PageLimit, ToolRecord, TurnInputs,
};

use super::store::{TestStore, finish};

/// The time of the first event that a test saves.
const BEGINNING_MS: i64 = 1_767_323_045_678;

/// Puts a message into the timeline, if there is no such message.
macro_rules! message {
    () => {
        "INSERT OR IGNORE INTO messages (
            conversation_id, id, role, status, sequence_number, created_at, content, tool_calls, tool_results,
            tenant_id
        )
        SELECT
            id, $2, 'user', 'taken', (SELECT COUNT(*) + 1 FROM messages WHERE conversation_id = $1), created_at,
            '', '[]', '[]', tenant_id
        FROM conversations WHERE id = $1;"
    };
}

const EVENT: &str = concat!(
    message!(),
    "INSERT INTO agent_execution_events (
        id, conversation_id, message_id, event_type, sequence_number, batch_key, created_at, event_data, data_bytes
    )
    SELECT id || last_sequence, id, $2, $3, last_sequence + 1, '', $5, $4, LENGTH(CAST($4 AS BLOB))
    FROM conversations WHERE id = $1;
    UPDATE conversations SET last_sequence = last_sequence + 1 WHERE id = $1 RETURNING last_sequence"
);

/// Begins an agent execution, if there is no such agent execution.
macro_rules! agent_execution {
    () => {
        concat!(
            message!(),
            "INSERT OR IGNORE INTO agent_definitions (hash, definition) VALUES ('hash', '{}');
            INSERT OR IGNORE INTO agent_executions (
                id, conversation_id, message_id, root_execution_id, depth, agent, agent_hash, status, started_at, tenant_id
            )
            SELECT $3, id, $2, $3, 0, agent, 'hash', 'running', created_at, tenant_id FROM conversations WHERE id = $1;"
        )
    };
}

const CLAIM: &str = concat!(
    agent_execution!(),
    "UPDATE agent_executions SET generation = $4 WHERE id = $3"
);

const TOOL_EXECUTION: &str = "
    INSERT INTO tool_execution_records (
        conversation_id, execution_id, message_id, agent_execution_id, step, call_index, call_id, tool_name, effect,
        timeout_ms, status, created_at, expires_at, signatures, tool_input, events, result, kind, approval, input_hash,
        approval_rule, claimant, is_error, duration_ms, definition_hash, title_template, inbox_tenant_id
    )
    VALUES (
        $1, $2, $3, $4, 0, (SELECT COUNT(*) FROM tool_execution_records), $5, $6, 'once',
        $7, $8, $9, $10, '[]', $11, '[]', $12, $13, $14, $15, $16, 'run-1', 0, 0, '', $17,
        (SELECT tenant_id FROM conversations WHERE id = $1)
    )";

impl TestStore {
    /// Runs a statement. Its parameters are texts.
    pub fn run(&self, statement: &'static str, parameters: &[&str]) {
        let mut query = sqlx::query(statement);
        for parameter in parameters {
            query = query.bind(*parameter);
        }
        finish(query.execute(self.database.pool())).unwrap();
    }

    /// A conversation of any tenant.
    pub fn add(&self, name: &str, tenant_id: &str) {
        self.add_of(name, Access::tenant(tenant_id));
    }

    /// A conversation of any tenant and owner.
    pub fn add_of(&self, name: &str, access: Access) {
        let new = NewConversation {
            name: name.to_owned(),
            access,
            agent: "default".to_owned(),
            title: None,
            model: None,
            metadata: std::collections::BTreeMap::new(),
        };
        finish(self.database.create_conversation(new)).unwrap();
    }

    /// Removes a conversation with all it has, if it is there.
    pub fn remove(&self, id: &str) {
        if let Some(access) = finish(self.database.owner_of(id)).unwrap() {
            finish(self.database.delete_conversation(&access, id, None)).unwrap();
        }
    }

    /// Saves an event as a worker would. Returns its number.
    pub fn append(
        &self,
        conversation_id: &str,
        message_id: &str,
        event_type: &str,
        data: &str,
    ) -> u32 {
        let at = BEGINNING_MS + self.lock().saved;
        self.lock().saved += 1;
        let insert = sqlx::query_scalar(EVENT)
            .bind(conversation_id)
            .bind(message_id)
            .bind(event_type)
            .bind(data)
            .bind(DateTime::<Utc>::from_timestamp_millis(at));
        finish(insert.fetch_one(self.database.pool())).unwrap()
    }

    /// Loses the last event of a conversation, as a database does that was restored.
    pub fn lose_last_event(&self, id: &str) {
        self.run(
            "DELETE FROM agent_execution_events WHERE conversation_id = $1
                AND sequence_number = (SELECT last_sequence FROM conversations WHERE id = $1);
            UPDATE conversations SET last_sequence = last_sequence - 1 WHERE id = $1",
            &[id],
        );
    }

    fn log_and_last_sequence(&self, id: &str) -> (EventLog, u32) {
        let mut found = finish(self.database.last_sequences(&[id.to_owned()])).unwrap();
        found.pop().unwrap()
    }

    pub fn log_of(&self, id: &str) -> EventLog {
        self.log_and_last_sequence(id).0
    }

    pub fn last_sequence(&self, id: &str) -> u32 {
        self.log_and_last_sequence(id).1
    }

    /// The events of a conversation of the default tenant.
    pub fn log(&self, id: &str) -> Vec<Event> {
        let access = Access::tenant("default");
        let (log, limit) = (self.log_of(id), PageLimit::rows(10_000));
        let page = finish(self.database.events(&access, &log, 0, limit));
        page.unwrap().events
    }

    /// All messages, each with its text, the client's id and the attachments.
    pub fn messages(&self) -> Vec<(String, String, Option<String>, String)> {
        let all = "SELECT id, content, client_message_id, attachments FROM messages";
        finish(sqlx::query_as(all).fetch_all(self.database.pool())).unwrap()
    }

    /// A message that waits.
    pub fn queue(&self, conversation_id: &str, message_id: &str) {
        let new = NewMessage {
            conversation_id: conversation_id.to_owned(),
            message_id: message_id.to_owned(),
            client_message_id: None,
            content: String::new(),
            sent_by: None,
            model: None,
            names_model: false,
            attachments: Vec::new(),
            max_attached_bytes: 0,
            on_busy: OnBusy::Queue,
            max_queued: 100,
            max_turns: None,
            max_turns_of_owner: None,
        };
        let access = finish(self.database.owner_of(conversation_id)).unwrap();
        finish(self.database.queue_message(&access.unwrap(), new)).unwrap();
    }

    /// An agent execution that runs in the turn of a message.
    pub fn begin(&self, conversation_id: &str, message_id: &str, agent_execution_id: &str) {
        let parameters = [conversation_id, message_id, agent_execution_id];
        self.run(agent_execution!(), &parameters);
        self.change_lists(conversation_id);
    }

    /// Changes the versions of the lists with the conversation. The store does so with its own changes.
    fn change_lists(&self, id: &str) {
        if let Some(access) = finish(self.database.owner_of(id)).unwrap() {
            let nothing = ConversationChange::default();
            finish(self.database.change_conversation(&access, id, &nothing)).unwrap();
        }
    }

    /// Claims a step of an agent execution, which gives its try this generation.
    pub fn claim(&self, conversation_id: &str, agent_execution_id: &str, generation: u32) {
        let generation = generation.to_string();
        let parameters = [conversation_id, "m", agent_execution_id, &generation];
        self.run(CLAIM, &parameters);
    }

    /// The turn of the message `by` takes a message, and goes on or ends.
    pub fn take(&self, conversation_id: &str, message_id: &str, by: &str, is_running: bool) {
        self.begin(conversation_id, by, by);
        let status = if is_running { "running" } else { "completed" };
        self.run(
            "UPDATE messages SET status = 'taken', agent_execution_id = $3,
                sequence_number = (SELECT COUNT(*) + 1 FROM messages WHERE conversation_id = $1)
            WHERE conversation_id = $1 AND id = $2;
            UPDATE agent_executions SET status = $4 WHERE id = $3",
            &[conversation_id, message_id, by, status],
        );
        self.change_lists(conversation_id);
    }

    /// The reply of a model that ends a step of an agent execution.
    pub fn reply(&self, agent_execution_id: &str, step: u32) {
        self.run(
            "INSERT INTO execution_checkpoints (
                id, conversation_id, message_id, agent_execution_id, checkpoint_type, step_number, generation,
                input_tokens, output_tokens, cost_nano, created_at, execution_state, execution_id
            )
            SELECT id || '/' || $2, conversation_id, message_id, id, 'llm_complete', $2, 1, 10, 5, 1500000, started_at, '{}', ''
            FROM agent_executions WHERE id = $1",
            &[agent_execution_id, &step.to_string()],
        );
    }

    /// A tool execution of an agent execution that runs. The run `run-1` has claimed the tool execution.
    pub fn call(&self, conversation_id: &str, tool: &OutsideTool) {
        let OutsideTool {
            message_id,
            agent_execution_id,
            record,
            ..
        } = tool;
        self.begin(conversation_id, message_id, agent_execution_id);
        let insert = sqlx::query(TOOL_EXECUTION)
            .bind(conversation_id)
            .bind(&record.call.execution_id)
            .bind(message_id)
            .bind(agent_execution_id)
            .bind(&record.call.call_id)
            .bind(&record.call.tool_name)
            .bind(record.call.timeout_ms)
            .bind(record.status.as_str())
            .bind(tool.requested_at)
            .bind(tool.expires_at)
            .bind(record.call.tool_input.as_ref().map(Json::as_str))
            .bind(record.end.as_ref().map(|end| end.result.as_str()))
            .bind(&record.call.kind)
            .bind(record.approval.as_str())
            .bind(&record.call.input_hash)
            .bind(serde_json::to_string(&record.call.rule()).unwrap())
            .bind(&record.call.title_template);
        finish(insert.execute(self.database.pool())).unwrap();
        self.change_lists(conversation_id);
    }
}

/// A call that waits for an hour; its name says for whom.
pub fn waiting(execution_id: &str) -> OutsideTool {
    let is_client = execution_id.starts_with("client");
    let call = ToolCall {
        execution_id: execution_id.to_owned(),
        call_id: format!("call_{execution_id}"),
        tool_name: "refund".to_owned(),
        tool_input: Some(Json::parse(r#"{"amount":9007199254740993}"#).unwrap()),
        kind: if is_client {
            ToolKind::Client
        } else {
            ToolKind::Worker
        }
        .into(),
        timeout_ms: 3_600_000,
        input_hash: "h".to_owned(),
        ..ToolCall::default()
    };
    let approval = if is_client {
        ApprovalState::NotNeeded
    } else {
        ApprovalState::Pending
    };
    OutsideTool {
        message_id: "m".to_owned(),
        agent_execution_id: "run_1".to_owned(),
        record: ToolRecord {
            approval,
            ..ToolRecord::pending(call)
        },
        requested_at: Utc::now(),
        expires_at: Some(Utc::now() + TimeDelta::hours(1)),
        is_expired: false,
    }
}
