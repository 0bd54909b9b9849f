//! The list of conversations. This module filters rows in Rust and not in SQL, because databases differ in their rules
//! for upper and lower case. Every database therefore finds equal results.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use everturn_proto::{
    ConversationName, LogId,
    words::{ConversationStatus, WaitingFor},
};

use super::{Access, EventLog, Spent};

/// The most rows that a filtered page reads: 100 KB or so, a few milliseconds. A search without results in a long list
/// costs no more, and the page returns a cursor to continue.
pub const MAX_SCANNED: u32 = 1000;

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Conversation {
    /// The id, unique across tenants.
    pub id: String,
    /// The event log's id.
    #[sqlx(try_from = "String")]
    pub log_id: LogId,
    /// The tenant.
    pub tenant_id: String,
    /// The owner; `None`: the conversation belongs to the tenant alone.
    pub owner_id: Option<String>,
    /// The agent of the conversation.
    pub agent: String,
    /// The title, if set.
    pub title: Option<String>,
    /// The model of new messages, `provider/model`; `None`: the agent's own model.
    pub model: Option<String>,
    /// User messages taken into turns, plus final assistant messages.
    #[sqlx(try_from = "i64")]
    pub message_count: u32,
    /// The largest sequence number; 0 before the first event.
    #[sqlx(try_from = "i64")]
    pub last_sequence: u32,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of the last change in lists: the conversation was created, a turn began or ended, a message joined a turn,
    /// or a call began or ended to wait for a person or the client. The other saves of a turn leave the time unchanged.
    pub active_at: DateTime<Utc>,
}

impl Conversation {
    /// Returns the name, unique in the tenant. Clients call the name the conversation's id.
    pub fn name(&self) -> &str {
        ConversationName::of_id(&self.id)
    }

    /// Returns the conversation's event log.
    pub fn log(&self) -> EventLog {
        EventLog {
            conversation_id: self.id.clone(),
            id: self.log_id.clone(),
        }
    }

    /// Returns true if the caller may see the conversation.
    pub fn is_seen_by(&self, access: &Access) -> bool {
        access.sees(&self.tenant_id, self.owner_id.as_deref())
    }

    /// Returns the conversation's cursor in the list.
    pub fn cursor(&self) -> ListCursor {
        ListCursor {
            active_at: self.active_at,
            id: self.id.clone(),
        }
    }
}

/// A conversation in a list, with its activity.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct ListedConversation {
    /// The row.
    #[sqlx(flatten)]
    pub conversation: Conversation,
    /// The activity at the moment of reading.
    #[sqlx(flatten)]
    pub activity: Activity,
}

/// A conversation with its activity and with the sums over its LLM calls.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct ShownConversation {
    /// The row and the activity.
    #[sqlx(flatten)]
    pub listed: ListedConversation,
    /// The metadata of the conversation.
    #[sqlx(json)]
    pub metadata: BTreeMap<String, String>,
    /// The sums over the calls with a stored answer, also of sub-agents.
    #[sqlx(flatten)]
    pub spent: Spent,
}

/// A conversation's activity. As in [`ConversationHead`](super::ConversationHead), the data comes from the store alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Activity {
    /// True while a turn has not ended.
    pub is_running: bool,
    /// True while a message waits for its turn.
    pub has_queued: bool,
    /// Calls that a person must approve.
    #[sqlx(try_from = "i64")]
    pub waiting_approvals: u32,
    /// Calls for the client to run, without a pending approval.
    #[sqlx(try_from = "i64")]
    pub waiting_client_tools: u32,
}

impl Activity {
    /// Returns true if a call waits for the party.
    fn waits_for(&self, party: &WaitingFor) -> bool {
        match party {
            WaitingFor::Approval => self.waiting_approvals > 0,
            WaitingFor::ClientTool => self.waiting_client_tools > 0,
            WaitingFor::Unknown(_) => false,
        }
    }

    /// Returns the status in one word. A state that needs a person comes first.
    pub fn status(&self) -> ConversationStatus {
        if self.waiting_approvals > 0 {
            ConversationStatus::WaitingForApproval
        } else if self.waiting_client_tools > 0 {
            ConversationStatus::WaitingForClientTool
        } else if self.is_running {
            ConversationStatus::Running
        } else if self.has_queued {
            ConversationStatus::Queued
        } else {
            ConversationStatus::Idle
        }
    }
}

/// A cursor in the list of conversations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    /// `active_at` of the row.
    pub active_at: DateTime<Utc>,
    /// The row's id, which breaks ties.
    pub id: String,
}

/// The version of a caller's list. Two reads of a list with the same version return the same rows in the same states. The
/// number has no other meaning; 0 stands for a list without a noted change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListVersion(pub(crate) i64);

/// A query for a page of the list.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// The cursor, exclusive: [`ListPage::next`] of the page before.
    pub before: Option<ListCursor>,
    /// The most rows of the page.
    pub limit: u32,
    /// The filter.
    pub filter: ListFilter,
}

/// A filter for conversations. An empty filter accepts any conversation.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    search: Option<String>,
    agent: Option<String>,
    waiting_for: Option<WaitingFor>,
}

/// A page of the list, the most recently active first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// The rows.
    pub conversations: Vec<ListedConversation>,
    /// The next page's cursor; `None` at the end of the list. A filtered page may have a cursor before the page is
    /// full, after reading [`MAX_SCANNED`] rows.
    pub next: Option<ListCursor>,
}

impl ListFilter {
    /// Makes a filter for titles that contain `search`, and for the agent. Upper and lower case are equal. Every
    /// character of `search` stands for itself, and an empty `search` accepts any title.
    pub fn new(search: Option<&str>, agent: Option<String>) -> Self {
        Self {
            search: search.map(folded).filter(|text| !text.is_empty()),
            agent,
            waiting_for: None,
        }
    }

    /// Adds the condition that a call of the conversation waits for the party.
    #[must_use]
    pub fn waiting_for(self, party: Option<WaitingFor>) -> Self {
        Self {
            waiting_for: party,
            ..self
        }
    }

    /// Returns true if the filter accepts only conversations with a waiting call.
    pub(crate) fn is_of_waiting(&self) -> bool {
        self.waiting_for.is_some()
    }

    fn is_empty(&self) -> bool {
        self.search.is_none() && self.agent.is_none() && self.waiting_for.is_none()
    }

    fn fits(&self, row: &ListedConversation) -> bool {
        let conversation = &row.conversation;
        self.agent
            .as_ref()
            .is_none_or(|agent| *agent == conversation.agent)
            && self
                .waiting_for
                .as_ref()
                .is_none_or(|party| row.activity.waits_for(party))
            && self.search.as_ref().is_none_or(|search| {
                folded(conversation.title.as_deref().unwrap_or_default()).contains(search.as_str())
            })
    }
}

impl ListQuery {
    /// Returns the number of rows to read behind `before`: the rows to filter, and one more row as a sign of further
    /// rows.
    pub fn rows_to_read(&self) -> u32 {
        self.scanned().saturating_add(1)
    }

    /// Cuts the page from rows in the order of the list. The rows number [`ListQuery::rows_to_read`] if more rows
    /// exist.
    pub fn page(&self, rows: impl IntoIterator<Item = ListedConversation>) -> ListPage {
        let (limit, scanned) = (to_usize(self.limit), to_usize(self.scanned()));
        let mut page = ListPage::default();
        let mut cursor = None;
        for (looked_at, row) in rows.into_iter().enumerate() {
            if looked_at == scanned || page.conversations.len() == limit {
                page.next = cursor;
                break;
            }
            cursor = Some(row.conversation.cursor());
            if self.filter.fits(&row) {
                page.conversations.push(row);
            }
        }
        page
    }

    fn scanned(&self) -> u32 {
        if self.filter.is_empty() {
            self.limit
        } else {
            self.limit.max(MAX_SCANNED)
        }
    }
}

/// Removes the difference between upper and lower case, in every script. Converting to upper case first unites the two
/// small sigmas, and makes "ss" of "ß". Accents and composed characters stay unchanged.
fn folded(text: &str) -> String {
    text.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32, title: &str, agent: &str) -> ListedConversation {
        let at = DateTime::<Utc>::from_timestamp_millis(i64::from(u32::MAX - number)).unwrap();
        let conversation = Conversation {
            id: format!("c{number}"),
            log_id: LogId::from("log"),
            tenant_id: "t".into(),
            owner_id: None,
            agent: agent.into(),
            title: Some(title.into()),
            model: None,
            message_count: 0,
            last_sequence: 0,
            created_at: at,
            active_at: at,
        };
        ListedConversation {
            conversation,
            activity: Activity::default(),
        }
    }

    #[test]
    fn a_status_is_what_asks_most_of_a_person() {
        let activity = |numbers: [u32; 4]| Activity {
            is_running: numbers[0] > 0,
            has_queued: numbers[1] > 0,
            waiting_approvals: numbers[2],
            waiting_client_tools: numbers[3],
        };
        for (numbers, status) in [
            ([0, 0, 0, 0], ConversationStatus::Idle),
            ([0, 1, 0, 0], ConversationStatus::Queued),
            ([1, 1, 0, 0], ConversationStatus::Running),
            ([1, 0, 0, 3], ConversationStatus::WaitingForClientTool),
            ([1, 0, 1, 3], ConversationStatus::WaitingForApproval),
        ] {
            assert_eq!(activity(numbers).status(), status, "{numbers:?}");
        }
    }

    fn finds(search: &str, title: &str) -> bool {
        ListFilter::new(Some(search), None).fits(&row(0, title, "a"))
    }

    #[test]
    fn a_search_knows_no_case_in_any_script() {
        for (search, title) in [
            ("", "anything"),
            ("weather", "The WEATHER in Rome"),
            ("ÉTÉ", "un été"),
            ("москва", "Поездка в МОСКВА"),
            ("ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς"),
            ("οδοσ", "ΟΔΟΣ"),
            ("STRASSE", "Hauptstraße"),
            ("天气", "今天天气"),
        ] {
            assert!(finds(search, title), "{search} in {title}");
        }
        for (search, title) in [("rain", "Weather"), ("ete", "été"), (" ", "one")] {
            assert!(!finds(search, title), "{search} not in {title}");
        }
    }

    #[test]
    fn no_character_is_a_wildcard() {
        assert!(
            finds("100%", "100% sure")
                && finds("a_b", "A_B")
                && finds("\\", "a\\b")
                && finds("[x]", "[X]")
        );
        assert!(!finds("%", "x") && !finds("_", "x") && !finds("1.0", "110") && !finds("*", "x"));
    }

    /// Reads all pages; gives the ids of all rows and the size of each page.
    fn pages(
        rows: &[ListedConversation],
        limit: u32,
        filter: &ListFilter,
    ) -> (Vec<String>, Vec<usize>) {
        let (mut ids, mut sizes, mut query) = (Vec::new(), Vec::new(), ListQuery::default());
        (query.limit, query.filter) = (limit, filter.clone());
        loop {
            let is_behind = |row: &&ListedConversation| {
                let before = query.before.as_ref();
                before.is_none_or(|cursor| row.conversation.cursor() < *cursor)
            };
            let read: Vec<_> = rows
                .iter()
                .filter(is_behind)
                .take(to_usize(query.rows_to_read()))
                .cloned()
                .collect();
            let page = query.page(read);
            ids.extend(
                page.conversations
                    .iter()
                    .map(|row| row.conversation.id.clone()),
            );
            sizes.push(page.conversations.len());
            query.before = page.next;
            if query.before.is_none() {
                return (ids, sizes);
            }
        }
    }

    #[test]
    fn pages_end_exactly() {
        let rows: Vec<_> = (0..6).map(|number| row(number, "x", "a")).collect();
        for (limit, sizes) in [(4, vec![4, 2]), (3, vec![3, 3]), (6, vec![6]), (7, vec![6])] {
            let found = pages(&rows, limit, &ListFilter::default());
            assert_eq!((found.0.len(), found.1), (6, sizes), "{limit}");
        }
        assert_eq!(pages(&[], 3, &ListFilter::default()).1, [0]);
    }

    #[test]
    fn a_search_looks_at_a_bounded_number_of_rows_and_says_where_to_go_on() {
        let title = |number| {
            if number % 1500 == 1400 {
                "rare"
            } else {
                "common"
            }
        };
        let rows: Vec<_> = (0..3000)
            .map(|number| row(number, title(number), "a"))
            .collect();
        let nothing = ListFilter::new(Some("missing"), None);
        assert_eq!(pages(&rows, 50, &nothing), (Vec::new(), vec![0, 0, 0]));
        let rare = ListFilter::new(Some("RARE"), None);
        assert_eq!(
            pages(&rows, 50, &rare),
            (vec!["c1400".into(), "c2900".into()], vec![0, 1, 1])
        );
        let common = ListFilter::new(Some("common"), None);
        assert_eq!(pages(&rows, 200, &common).0.len(), 2998);
    }

    #[test]
    fn a_filter_finds_the_party_that_is_waited_for() {
        let mut asks = row(0, "x", "a");
        (asks.activity.waiting_approvals, asks.activity.is_running) = (1, true);
        let mut both = row(1, "x", "a");
        (
            both.activity.waiting_approvals,
            both.activity.waiting_client_tools,
        ) = (1, 1);
        let rows = [asks, both, row(2, "x", "a")];
        let filter = |party| ListFilter::default().waiting_for(Some(party));
        for (party, found) in [
            (WaitingFor::Approval, &["c0", "c1"][..]),
            (WaitingFor::ClientTool, &["c1"]),
            (WaitingFor::Unknown("later".into()), &[]),
        ] {
            assert_eq!(pages(&rows, 9, &filter(party)).0, found);
        }
    }

    #[test]
    fn an_agent_is_matched_to_the_letter() {
        let rows = [row(0, "x", "a"), row(1, "x", "A"), row(2, "x", "ab")];
        assert_eq!(
            pages(&rows, 1, &ListFilter::new(None, Some("a".into()))).0,
            ["c0"]
        );
        assert_eq!(
            pages(&rows, 9, &ListFilter::new(Some("y"), Some("a".into()))).0,
            [""; 0]
        );
    }
}
