//! The real store, in memory. Tests can make its calls fail, and count its reads.
//!
//! A call runs to its end while the thread of the test waits. During a call, a paused clock therefore stands still, and
//! no other task of the test runs. Rows that tests store themselves are in `rows.rs`.

use std::{
    future::Future,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Thread, turn::SavedApproval};
use everturn_store::{
    Access, AgentExecution, AgentExecutionCursor, AgentExecutions, Blob, Blobs, Checkpoint,
    ClientToolClaim, Conversation, ConversationChange, ConversationHead, Conversations, EventLinks,
    EventLog, EventPage, EventReader, InboxCall, InboxCursor, ListPage, ListQuery, ListVersion,
    McpCall, McpCallCursor, MessageCancel, MessageQueue, NewAnswer, NewAuditEntry, NewBlob,
    NewConversation, NewMessage, NotedAnswer, OutsideTool, OutsideTools, PageLimit, PastCall,
    PastCallContent, PastCalls, PastTry, PersonsOutcome, Proposal, QueuedMessage, ResultRange,
    ResultSender, ResultSlice, ResumePoint, RetryTurn, SettledOutcome, ShownConversation,
    StepUsage, StoreError, StoredBlob, TenantUsage, ToolEnd, ToolExecution, ToolResults,
    ToolUsageDay, ToolUsageQuery, TriesOf, TurnResult, TurnResults, UsageDay, UsageQuery,
    WaitingCall, WantedLinks, sqlite::SqliteStore,
};
use tokio::runtime::{Builder, Runtime};

/// The runtime of the databases' connections. sqlx gives a connection back in a task (docs/libraries.md, sqlx: a
/// connection goes back to its pool in a task), and the runtime of the test runs no task during a call.
static DATABASES: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

/// Runs a call of a database to its end, while the thread of the test waits. The time-outs of the call follow the clock of
/// `DATABASES`, which is never paused.
pub fn finish<T>(call: impl Future<Output = T>) -> T {
    let _runtime = DATABASES.enter();
    futures::executor::block_on(tokio::task::unconstrained(call))
}

/// The store of a test. Clones share the database.
#[derive(Clone)]
pub struct TestStore {
    /// The database, whose calls neither fail nor count.
    pub database: SqliteStore,
    seen: Arc<Mutex<Seen>>,
}

/// What tests ask the store to do, and what they count.
#[derive(Default)]
pub struct Seen {
    /// Makes every call fail.
    pub broken: Option<fn() -> StoreError>,
    /// Pages of events read.
    pub reads: usize,
    /// Pages of lists read.
    pub list_reads: usize,
    /// The number of lists in each query for the versions of lists.
    pub list_looks: Vec<usize>,
    /// The number of conversations in each query for missed events.
    pub looks: Vec<usize>,
    /// The ranges of results that were asked for.
    pub result_ranges: Vec<ResultRange>,
    /// Events that the test has saved. Each event is a millisecond later than the event before.
    pub saved: i64,
}

impl Default for TestStore {
    fn default() -> Self {
        Self {
            database: finish(SqliteStore::open_in_memory()).unwrap(),
            seen: Arc::default(),
        }
    }
}

impl TestStore {
    pub fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn answer<T>(
        &self,
        notes: &[&dyn Fn(&mut Seen)],
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.lock().broken {
            return Err(error());
        }
        for note in notes {
            note(&mut self.lock());
        }
        finish(call)
    }
}

/// Passes the calls of a trait on to the database. A closure behind a call notes the call.
macro_rules! pass_on {
    ($name:ident: $($call:ident($($argument:ident: $type:ty),*) -> $answer:ty $({ $note:expr })?;)*) => {
        #[async_trait]
        impl $name for TestStore {
            $(async fn $call(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                let notes: &[&dyn Fn(&mut Seen)] = &[$(&$note)?];
                self.answer(notes, $name::$call(&self.database $(, $argument)*))
            })*
        }
    };
}

pass_on! { EventReader:
    events(access: &Access, log: &EventLog, from: u32, limit: PageLimit) -> EventPage { |seen| seen.reads += 1 };
    events_before(access: &Access, log: &EventLog, before: u32, limit: PageLimit) -> EventPage { |seen| seen.reads += 1 };
    event_links(access: &Access, log: &EventLog, wanted: &WantedLinks) -> EventLinks;
    last_common(access: &Access, log: &EventLog, before: u32, by: DateTime<Utc>) -> u32 { |seen| seen.reads += 1 };
    conversation_head(access: &Access, conversation: &str) -> Option<ConversationHead>;
    last_sequences(ids: &[String]) -> Vec<(EventLog, u32)> { |seen| seen.looks.push(ids.len()) };
    check() -> ();
}

pass_on! { Conversations:
    create_conversation(new: NewConversation) -> Option<Conversation>;
    conversation(access: &Access, name: &str) -> Option<Conversation>;
    shown_conversation(access: &Access, name: &str) -> Option<ShownConversation>;
    list_conversations(access: &Access, query: &ListQuery) -> ListPage { |seen| seen.list_reads += 1 };
    list_versions(callers: &[Access]) -> Vec<ListVersion> { |seen| seen.list_looks.push(callers.len()) };
    change_conversation(access: &Access, id: &str, change: &ConversationChange) -> Option<Conversation>;
    delete_conversation(access: &Access, id: &str, audit: Option<&NewAuditEntry>) -> bool;
    resume_point(access: &Access, conversation: &str, max_waiting: u32) -> Option<ResumePoint>;
}

pass_on! { MessageQueue:
    queue_message(access: &Access, new: NewMessage) -> QueuedMessage;
    retry_turn(access: &Access, retry: RetryTurn) -> QueuedMessage;
    cancel_message(access: &Access, conversation: &str, message: &str, reason: &str) -> MessageCancel;
    withdraw_message(access: &Access, conversation: &str, message: &str) -> bool;
}

pass_on! { AgentExecutions:
    agent_executions(
        access: &Access, conversation: &str, turn: Option<&str>, after: Option<AgentExecutionCursor>, limit: u32
    ) -> Vec<AgentExecution>;
    agent_execution(access: &Access, conversation: &str, id: &str) -> Option<AgentExecution>;
    waiting_call(access: &Access, conversation: &str) -> Option<WaitingCall>;
    step_usage(access: &Access, conversation: &str, id: &str, limit: u32) -> Vec<StepUsage>;
    checkpoints(access: &Access, conversation: &str, id: &str, limit: u32) -> Vec<Checkpoint>;
    tool_executions(access: &Access, conversation: &str, id: &str, limit: u32) -> Vec<ToolExecution>;
}

pass_on! { PastCalls:
    past_calls(access: &Access, conversation: &str, id: &str, after: Option<u32>, limit: u32) -> Vec<PastCall>;
    past_call(access: &Access, conversation: &str, id: &str, step: u32) -> Option<PastCallContent>;
    failed_tries(access: &Access, conversation: &str, id: &str, steps: TriesOf, limit: u32) -> Vec<PastTry>;
}

pass_on! { TurnResults:
    turn_result(access: &Access, conversation: &str, message: &str) -> Option<TurnResult>;
    mcp_call(access: &Access, client_message_id: &str) -> Option<McpCall>;
    mcp_calls(access: &Access, after: Option<&McpCallCursor>, limit: u32) -> Vec<McpCall>;
}

pass_on! { TenantUsage:
    usage_days(tenant: &str, query: &UsageQuery) -> Vec<UsageDay>;
    tool_usage(query: &ToolUsageQuery) -> Vec<ToolUsageDay>;
    forget_usage(before_day: &str) -> u64;
}

pass_on! { OutsideTools:
    waiting_tools(access: &Access, conversation: &str, limit: PageLimit) -> Vec<OutsideTool>;
    outside_tool(access: &Access, conversation: &str, execution: &str) -> Option<OutsideTool>;
    store_result(
        access: &Access, conversation: &str, execution: &str, sender: ResultSender<'_>, end: ToolEnd
    ) -> Option<OutsideTool>;
    note_answer(
        access: &Access, conversation: &str, execution: &str, answer: NewAnswer<'_>, audit: Option<&NewAuditEntry>
    ) -> NotedAnswer;
    settle_outcome(
        access: &Access, conversation: &str, outcome: &PersonsOutcome, audit: &NewAuditEntry
    ) -> SettledOutcome;
    approval_inbox(
        access: &Access, after: Option<&InboxCursor>, limit: PageLimit
    ) -> (Vec<InboxCall>, bool);
    proposals(calls: &[(String, String)]) -> Vec<Proposal>;
    saved_answer(conversation: &str, execution: &str) -> Option<SavedApproval>;
    claim_client_tool(
        access: &Access, conversation: &str, execution: &str, claimant: &str, until: DateTime<Utc>
    ) -> Option<ClientToolClaim>;
}

pass_on! { ToolResults:
    tool_result(
        access: &Access, conversation: &str, execution: &str, range: ResultRange
    ) -> Option<ResultSlice> { |seen| seen.result_ranges.push(range) };
    tool_result_of_thread(
        conversation: &str, thread: &Thread, execution: &str, range: ResultRange
    ) -> Option<ResultSlice>;
}

pass_on! { Blobs:
    add_blob(access: &Access, new: NewBlob, upload_key: Option<&str>, max_unattached: u64) -> Blob;
    add_blob_of(conversation: &str, new: NewBlob) -> ();
    uploaded_blob(access: &Access, upload_key: &str) -> Option<Blob>;
    blob(access: &Access, id: &str) -> Option<StoredBlob>;
    blob_of(conversation: &str, id: &str) -> Option<StoredBlob>;
    remove_unattached(tenant: Option<&str>, before: DateTime<Utc>, limit: u32) -> u64;
    note_object(key: &str, remove_after: DateTime<Utc>) -> ();
    removed_objects(now: DateTime<Utc>, limit: u32) -> Vec<String>;
    forget_object(key: &str) -> ();
}
