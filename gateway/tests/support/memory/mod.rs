//! A store in memory, which has only what a gateway uses.

mod conversations;
mod tools;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::{Json, LogId, event::Event};
use everturn_store::{
    Access, Activity, AgentExecution, Conversation, ConversationHead, EventLinks, EventLog,
    EventPage, EventReader, NewAuditEntry, NewConversation, NewMessage, OutsideTool, PageLimit,
    ResultRange, ResultSlice, ResumePoint, StoreError, TakenBy, WantedLinks,
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
    /// Claims of client tools: the call, who has claimed it last, how many have, and until when.
    pub claims: Vec<(String, String, u32, DateTime<Utc>)>,
    /// Results of tools, each with its conversation and its tool execution.
    pub results: Vec<(String, String, ResultSlice)>,
    /// Entries of the audit trail, of what this store changes.
    pub audit: Vec<NewAuditEntry>,
    /// The ranges of results that were asked for.
    pub result_ranges: Vec<ResultRange>,
    /// What there is to resume, in every conversation.
    pub resume_point: Option<ResumePoint>,
    /// Whether something else of the conversation has not ended.
    pub has_others: bool,
    pub current: Option<String>,
    /// Pages of lists read.
    pub list_reads: usize,
    /// What goes on in each conversation, as lists say it.
    pub activities: BTreeMap<String, Activity>,
    /// The newest generation of each agent execution, by conversation.
    generations: BTreeMap<String, BTreeMap<String, u32>>,
    /// The conversations that each query for missed events asked for.
    pub looks: Vec<Vec<String>>,
    /// Pages of events read.
    pub reads: usize,
    /// Makes every call fail.
    pub broken: Option<fn() -> StoreError>,
    /// How many events were lost. Those that are saved after a loss are saved that many seconds later.
    losses: u32,
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
        let second = 5 + tables.losses;
        let events = tables.events.entry(conversation_id.to_owned()).or_default();
        let sequence_number = u32::try_from(events.len()).unwrap() + 1;
        events.push(Event {
            id: format!("evt_{sequence_number}"),
            conversation_id: conversation_id.to_owned(),
            message_id: message_id.to_owned(),
            event_type: event_type.to_owned(),
            event_data: Some(Json::parse(data).unwrap()),
            sequence_number,
            created_at: format!("2026-01-02T03:04:{second:02}.678Z"),
        });
        if let Some(conversation) = tables.conversations.get_mut(conversation_id) {
            conversation.last_sequence = sequence_number;
        }
        sequence_number
    }

    /// Claims a step of an agent execution, which gives its try this generation.
    pub fn claim(&self, conversation_id: &str, agent_execution_id: &str, generation: u32) {
        let mut tables = self.lock();
        let of_conversation = tables.generations.entry(conversation_id.to_owned());
        let newest = of_conversation.or_default();
        newest.insert(agent_execution_id.to_owned(), generation);
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
        let (name, tenant_id) = (id.to_owned(), tenant_id.to_owned());
        let new = NewConversation {
            name,
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
        tables.losses += 1;
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
        let id = new.access.id_of(&new.name);
        if let Some(stored) = self.conversations.get(&id) {
            return stored.clone();
        }
        self.clock += 1;
        let at = DateTime::<Utc>::from_timestamp_millis(1_767_323_045_000 + self.clock).unwrap();
        let made = Conversation {
            log_id: self.log_of(&id).id,
            id: id.clone(),
            tenant_id: new.access.tenant_id,
            owner_id: new.access.owner_id,
            agent: new.agent,
            title: new.title,
            message_count: 0,
            last_sequence: 0,
            created_at: at,
            updated_at: at,
        };
        self.conversations.entry(id).or_insert(made).clone()
    }
}

#[async_trait]
impl EventReader for MemoryStore {
    async fn events(
        &self,
        access: &Access,
        log: &EventLog,
        from_sequence: u32,
        limit: PageLimit,
    ) -> Result<EventPage> {
        let mut tables = self.open()?;
        tables.reads += 1;
        let conversation_id = log.conversation_id.as_str();
        if !tables.shows(access, conversation_id) || tables.log_of(conversation_id) != *log {
            return Ok(EventPage {
                events: Vec::new(),
                has_more: false,
                generations: BTreeMap::new(),
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
        let mut bytes = 0;
        let fits = |(place, event): &(usize, &Event)| {
            bytes += event.event_data.as_ref().map_or(0, Json::stored_len);
            *place == 0 || bytes <= limit.bytes as usize
        };
        let numbered = rest.iter().copied().take(limit.rows as usize).enumerate();
        let page: Vec<_> = numbered.take_while(fits).collect();
        let generations = tables.generations.get(conversation_id);
        let generations = generations.filter(|_| !page.is_empty()).cloned();
        Ok(EventPage {
            generations: generations.unwrap_or_default(),
            has_more: page.len() < rest.len(),
            events: page.into_iter().map(|(_, event)| event.clone()).collect(),
        })
    }

    async fn events_before(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        limit: PageLimit,
    ) -> Result<EventPage> {
        let all = PageLimit {
            rows: u32::MAX,
            bytes: u32::MAX,
        };
        let mut page = self.events(access, log, 0, all).await?;
        page.events.retain(|event| event.sequence_number < before);
        let mut bytes = 0;
        let fits = |(place, event): &(usize, &Event)| {
            bytes += event.event_data.as_ref().map_or(0, Json::stored_len);
            *place == 0 || bytes <= limit.bytes as usize
        };
        let newest_first = page.events.iter().rev().take(limit.rows as usize);
        let taken = newest_first.enumerate().take_while(fits).count();
        let left = page.events.len() - taken;
        page.events.drain(..left);
        page.has_more = left > 0;
        page.generations.clear();
        Ok(page)
    }

    async fn event_links(&self, _: &Access, _: &EventLog, _: &WantedLinks) -> Result<EventLinks> {
        Ok(EventLinks::default())
    }

    async fn last_common(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        saved_by: DateTime<Utc>,
    ) -> Result<u32> {
        let page = self
            .events(access, log, 0, PageLimit::rows(u32::MAX))
            .await?;
        let is_common = |event: &&Event| {
            let saved: DateTime<Utc> = event.created_at.parse().unwrap();
            event.sequence_number < before && saved <= saved_by
        };
        let last = page.events.iter().rfind(is_common);
        Ok(last.map_or(0, |event| event.sequence_number))
    }

    async fn conversation_head(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationHead>> {
        let tables = self.open()?;
        let current_message_id = tables.current.clone();
        let found = tables
            .conversations
            .get(conversation_id)
            .filter(|_| tables.shows(access, conversation_id));
        Ok(found.map(|conversation| ConversationHead {
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
