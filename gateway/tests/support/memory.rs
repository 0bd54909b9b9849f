//! A store in memory, which has only what a gateway uses.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Json, LogId, Thread, event::Event};
use everturn_store::{
    Access, AgentExecution, AgentExecutionPlace, AgentExecutions, Conversation, ConversationStatus,
    Conversations, EventLog, EventPage, EventReader, ListPage, ListPlace, ListQuery, Missing,
    NewConversation, NewMessage, OutsideTool, OutsideTools, QueuedMessage, ResultRange,
    ResultSlice, ResumePoint, StoreError, TakenBy, ToolEnd, ToolResults,
};

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Tables>>);

#[derive(Default)]
pub struct Tables {
    conversations: BTreeMap<String, Conversation>,
    /// How often a conversation with this id was removed.
    removed: BTreeMap<String, u32>,
    events: BTreeMap<String, Vec<Event>>,
    pub messages: Vec<NewMessage>,
    /// Messages that a turn has taken.
    pub taken: Vec<(String, TakenBy)>,
    /// Agent executions in order, each with its conversation.
    pub executions: Vec<(String, AgentExecution)>,
    /// Tool calls that someone outside answers, each with its conversation.
    pub outside: Vec<(String, OutsideTool)>,
    /// Results of tools, each with its conversation and its execution.
    pub results: Vec<(String, String, ResultSlice)>,
    /// The ranges of results that were asked for.
    pub result_ranges: Vec<ResultRange>,
    /// What there is to resume, in every conversation.
    pub resume_point: Option<ResumePoint>,
    pub current: Option<String>,
    /// The conversations that each query for missed events asked for.
    pub looks: Vec<Vec<String>>,
    /// Pages of events read.
    pub reads: usize,
    /// Makes every call fail.
    pub broken: Option<fn() -> StoreError>,
    clock: i64,
}

impl MemoryStore {
    pub fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap()
    }

    fn open(&self) -> Result<MutexGuard<'_, Tables>> {
        let tables = self.lock();
        match tables.broken {
            Some(error) => Err(error()),
            None => Ok(tables),
        }
    }

    /// Saves an event as a worker would.
    pub fn append(
        &self,
        conversation_id: &str,
        message_id: &str,
        event_type: &str,
        data: &str,
    ) -> u32 {
        let mut tables = self.lock();
        let events = tables.events.entry(conversation_id.to_owned()).or_default();
        let sequence_number = u32::try_from(events.len()).unwrap() + 1;
        events.push(Event {
            id: format!("evt_{sequence_number}"),
            conversation_id: conversation_id.to_owned(),
            message_id: message_id.to_owned(),
            event_type: event_type.to_owned(),
            event_data: Some(Json::parse(data).unwrap()),
            sequence_number,
            created_at: "2026-01-02T03:04:05.678Z".to_owned(),
        });
        if let Some(conversation) = tables.conversations.get_mut(conversation_id) {
            conversation.last_sequence = sequence_number;
        }
        sequence_number
    }

    /// Says that the turn of `by` took this message.
    pub fn take(&self, message_id: &str, by: &str, is_running: bool) {
        let turn = TakenBy {
            message_id: by.to_owned(),
            is_running,
        };
        self.lock().taken.push((message_id.to_owned(), turn));
    }

    /// A conversation of any tenant.
    pub fn add(&self, id: &str, tenant_id: &str) {
        let (id, tenant_id) = (id.to_owned(), tenant_id.to_owned());
        let new = NewConversation {
            id,
            access: Access::tenant(tenant_id),
            agent: "default".to_owned(),
            title: None,
        };
        self.lock().create(new);
    }

    /// A conversation's events.
    pub fn log(&self, id: &str) -> Vec<Event> {
        self.lock().events.get(id).cloned().unwrap_or_default()
    }

    /// Loses the last event of a conversation, as a database does that was restored.
    pub fn lose_last_event(&self, id: &str) {
        let mut tables = self.lock();
        let tables = &mut *tables;
        tables.events.get_mut(id).unwrap().pop();
        let last_sequence = tables.last_sequence(id);
        let conversation = tables.conversations.get_mut(id).unwrap();
        conversation.last_sequence = last_sequence;
    }

    /// Removes a conversation with all it has.
    pub fn remove(&self, id: &str) {
        let mut tables = self.lock();
        tables.conversations.remove(id);
        tables.events.remove(id);
        *tables.removed.entry(id.to_owned()).or_default() += 1;
    }
}

impl Tables {
    pub fn last_sequence(&self, conversation_id: &str) -> u32 {
        self.events
            .get(conversation_id)
            .map_or(0, |events| u32::try_from(events.len()).unwrap())
    }

    /// The log of a conversation: its id, and another one each time that a conversation with this id was removed.
    pub fn log_of(&self, id: &str) -> EventLog {
        let log_id = match self.removed.get(id) {
            Some(count) => LogId::from(format!("{id}-{count}")),
            None => LogId::from(id),
        };
        EventLog {
            conversation_id: id.to_owned(),
            id: log_id,
        }
    }

    /// False for a conversation of somebody else; tests of tails have events without a conversation.
    fn shows(&self, access: &Access, id: &str) -> bool {
        self.conversations
            .get(id)
            .is_none_or(|row| access.sees(&row.tenant_id, row.owner_id.as_deref()))
    }

    fn create(&mut self, new: NewConversation) -> Conversation {
        self.clock += 1;
        let at = DateTime::<Utc>::from_timestamp_millis(1_767_323_045_000 + self.clock).unwrap();
        let made = Conversation {
            id: new.id.clone(),
            log_id: self.log_of(&new.id).id,
            tenant_id: new.access.tenant_id,
            owner_id: new.access.owner_id,
            agent: new.agent,
            title: new.title,
            message_count: 0,
            last_sequence: 0,
            created_at: at,
            updated_at: at,
        };
        self.conversations.entry(new.id).or_insert(made).clone()
    }
}

#[async_trait]
impl EventReader for MemoryStore {
    async fn events(
        &self,
        access: &Access,
        log: &EventLog,
        from_sequence: u32,
        limit: u32,
    ) -> Result<EventPage> {
        let mut tables = self.open()?;
        tables.reads += 1;
        let conversation_id = log.conversation_id.as_str();
        if !tables.shows(access, conversation_id) || tables.log_of(conversation_id) != *log {
            return Ok(EventPage {
                events: Vec::new(),
                has_more: false,
            });
        }
        let events = tables
            .events
            .get(conversation_id)
            .map_or(&[][..], Vec::as_slice);
        let rest: Vec<_> = events
            .iter()
            .filter(|event| event.sequence_number >= from_sequence)
            .collect();
        let has_more = rest.len() > limit as usize;
        Ok(EventPage {
            events: rest.into_iter().take(limit as usize).cloned().collect(),
            has_more,
        })
    }

    async fn conversation_status(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationStatus>> {
        let tables = self.open()?;
        let current_message_id = tables.current.clone();
        let found = tables
            .conversations
            .get(conversation_id)
            .filter(|_| tables.shows(access, conversation_id));
        Ok(found.map(|conversation| ConversationStatus {
            log_id: conversation.log_id.clone(),
            is_running: current_message_id.is_some(),
            last_sequence: conversation.last_sequence,
            current_message_id,
        }))
    }

    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(EventLog, u32)>> {
        let mut tables = self.open()?;
        tables.looks.push(conversation_ids.to_vec());
        let is_known = |id: &&String| {
            tables.events.contains_key(*id) || tables.conversations.contains_key(*id)
        };
        let known = conversation_ids.iter().filter(is_known);
        Ok(known
            .map(|id| (tables.log_of(id), tables.last_sequence(id)))
            .collect())
    }
}

#[async_trait]
impl Conversations for MemoryStore {
    async fn create_conversation(&self, new: NewConversation) -> Result<Option<Conversation>> {
        let access = new.access.clone();
        let conversation = self.open()?.create(new);
        Ok(Some(conversation).filter(|row| access.sees(&row.tenant_id, row.owner_id.as_deref())))
    }

    async fn conversation(&self, access: &Access, id: &str) -> Result<Option<Conversation>> {
        let tables = self.open()?;
        Ok(tables
            .conversations
            .get(id)
            .filter(|_| tables.shows(access, id))
            .cloned())
    }

    async fn list_conversations(&self, access: &Access, query: &ListQuery) -> Result<ListPage> {
        let tables = self.open()?;
        let place = |row: &Conversation| ListPlace {
            updated_at: row.updated_at,
            id: row.id.clone(),
        };
        let mut rows: Vec<_> = tables
            .conversations
            .values()
            .filter(|row| access.sees(&row.tenant_id, row.owner_id.as_deref()))
            .cloned()
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.retain(|row| {
            query
                .before
                .as_ref()
                .is_none_or(|before| place(row) < *before)
        });
        rows.truncate(query.rows_to_read() as usize);
        Ok(query.page(rows))
    }

    async fn rename_conversation(
        &self,
        access: &Access,
        id: &str,
        title: Option<&str>,
    ) -> Result<Option<Conversation>> {
        let mut tables = self.open()?;
        if !tables.shows(access, id) {
            return Ok(None);
        }
        Ok(tables.conversations.get_mut(id).map(|row| {
            row.title = title.map(str::to_owned);
            row.clone()
        }))
    }

    async fn delete_conversation(&self, access: &Access, id: &str) -> Result<bool> {
        let mut tables = self.open()?;
        let is_there = tables.shows(access, id) && tables.conversations.remove(id).is_some();
        if is_there {
            tables.events.remove(id);
            tables.messages.retain(|row| row.conversation_id != id);
            *tables.removed.entry(id.to_owned()).or_default() += 1;
        }
        Ok(is_there)
    }

    async fn queue_message(&self, access: &Access, new: NewMessage) -> Result<QueuedMessage> {
        let mut tables = self.open()?;
        let id = &new.conversation_id;
        if !tables.conversations.contains_key(id) || !tables.shows(access, id) {
            return Err(StoreError::not_found(
                Missing::Conversation,
                new.conversation_id,
            ));
        }
        let same = |row: &&NewMessage| {
            row.conversation_id == new.conversation_id
                && new.client_message_id.is_some()
                && row.client_message_id == new.client_message_id
        };
        if let Some(stored) = tables.messages.iter().find(same) {
            if stored.content != new.content {
                let client_message_id = new.client_message_id.unwrap_or_default();
                return Err(StoreError::OtherContent { client_message_id });
            }
            let message_id = stored.message_id.clone();
            let turn = tables
                .taken
                .iter()
                .find(|(taken, _)| *taken == message_id)
                .map(|(_, by)| by.clone());
            return Ok(QueuedMessage {
                message_id,
                is_new: false,
                turn,
            });
        }
        if tables.messages.len() - tables.taken.len() >= new.max_queued as usize {
            return Err(StoreError::QueueFull {
                limit: new.max_queued,
            });
        }
        let message_id = new.message_id.clone();
        tables.messages.push(new);
        Ok(QueuedMessage {
            message_id,
            is_new: true,
            turn: None,
        })
    }

    async fn withdraw_message(
        &self,
        access: &Access,
        conversation_id: &str,
        message_id: &str,
    ) -> Result<bool> {
        let mut tables = self.open()?;
        let is_there = tables.shows(access, conversation_id)
            && !tables.taken.iter().any(|(id, _)| id == message_id);
        let before = tables.messages.len();
        tables
            .messages
            .retain(|row| !is_there || row.message_id != message_id);
        Ok(tables.messages.len() < before)
    }

    async fn resume_point(
        &self,
        access: &Access,
        conversation_id: &str,
        max_waiting: u32,
    ) -> Result<Option<ResumePoint>> {
        let tables = self.open()?;
        let point = tables
            .resume_point
            .clone()
            .filter(|_| tables.shows(access, conversation_id));
        let limited = |ids: Vec<String>| ids.into_iter().take(max_waiting as usize).collect();
        Ok(point.map(|point| ResumePoint {
            waiting: limited(point.waiting),
            ..point
        }))
    }
}

#[async_trait]
impl AgentExecutions for MemoryStore {
    async fn agent_executions(
        &self,
        access: &Access,
        conversation_id: &str,
        after: Option<AgentExecutionPlace>,
        limit: u32,
    ) -> Result<Vec<AgentExecution>> {
        let tables = self.open()?;
        let of =
            |(id, _): &&(String, AgentExecution)| id == conversation_id && tables.shows(access, id);
        let place = after.unwrap_or_default();
        let is_behind =
            |row: &&AgentExecution| (row.started_at, &row.id) > (place.started_at, &place.id);
        let rows = tables
            .executions
            .iter()
            .filter(of)
            .map(|(_, row)| row)
            .filter(is_behind);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    async fn agent_execution(
        &self,
        access: &Access,
        conversation_id: &str,
        id: &str,
    ) -> Result<Option<AgentExecution>> {
        let rows = self
            .agent_executions(access, conversation_id, None, u32::MAX)
            .await?;
        Ok(rows.into_iter().find(|row| row.id == id))
    }
}

#[async_trait]
impl OutsideTools for MemoryStore {
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: u32,
    ) -> Result<Vec<OutsideTool>> {
        let tables = self.open()?;
        let of =
            |(id, _): &&(String, OutsideTool)| id == conversation_id && tables.shows(access, id);
        let waits = |tool: &&OutsideTool| tool.needs_approval() || tool.needs_result();
        let waiting = tables
            .outside
            .iter()
            .filter(of)
            .map(|(_, tool)| tool)
            .filter(waits);
        Ok(waiting.take(limit as usize).cloned().collect())
    }

    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>> {
        let tables = self.open()?;
        let is_it = |(id, tool): &&(String, OutsideTool)| {
            id == conversation_id
                && tables.shows(access, id)
                && tool.record.call.execution_id == execution_id
        };
        Ok(tables
            .outside
            .iter()
            .find(is_it)
            .map(|(_, tool)| tool.clone()))
    }

    async fn store_client_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>> {
        for (id, tool) in &mut self.open()?.outside {
            if id == conversation_id
                && tool.record.call.execution_id == execution_id
                && tool.needs_result()
            {
                tool.record.status.clone_from(&end.status);
                tool.record.end = Some(end.clone());
            }
        }
        self.outside_tool(access, conversation_id, execution_id)
            .await
    }
}

#[async_trait]
impl ToolResults for MemoryStore {
    async fn tool_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        range: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        let mut tables = self.open()?;
        tables.result_ranges.push(range);
        let found = tables.results.iter().find(|(conversation, execution, _)| {
            conversation == conversation_id
                && execution == execution_id
                && tables.shows(access, conversation)
        });
        Ok(found.map(|(.., slice)| slice.clone()))
    }

    async fn tool_result_of_thread(
        &self,
        _: &str,
        _: &Thread,
        _: &str,
        _: ResultRange,
    ) -> Result<Option<ResultSlice>> {
        unreachable!("gateways read for callers")
    }
}
