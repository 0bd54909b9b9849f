//! A list as it was read, and what a reader is told who has seen an earlier one.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use everturn_store::{ListPage, ListPlace, ListedConversation};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    listed::{ListedConversationBody, place_token},
    live::sse,
};

/// The newest conversations of a list at one moment.
#[derive(Debug)]
pub(super) struct ListSnapshot {
    /// The last updated first.
    rows: Vec<Arc<Row>>,
    /// Where older ones begin; `None` when there are none.
    next_before: Option<String>,
}

/// A conversation, and how it is shown.
#[derive(Debug)]
struct Row {
    place: ListPlace,
    listed: ListedConversation,
    json: Box<RawValue>,
}

impl ListSnapshot {
    /// Makes a list of what was read. It shares the rows that have not changed with `earlier`.
    pub(super) fn new(page: ListPage, earlier: Option<&Self>) -> Self {
        let known = earlier.map(Self::by_id).unwrap_or_default();
        let row = |listed: ListedConversation| {
            let known = known.get(listed.conversation.id.as_str());
            match known.filter(|row| row.listed == listed) {
                Some(row) => Some(Arc::clone(row)),
                None => Row::new(listed).map(Arc::new),
            }
        };
        let next = page.next.as_ref();
        Self {
            next_before: next.map(place_token),
            rows: page.conversations.into_iter().filter_map(row).collect(),
        }
    }

    /// When the first conversation was updated; `None` when there is none.
    pub(super) fn newest(&self) -> Option<DateTime<Utc>> {
        self.rows.first().map(|row| row.place.updated_at)
    }

    /// Returns the frames for a reader who has been shown `shown`: the whole list, or what has changed since. They are empty
    /// when nothing has.
    pub(super) fn frames_since(&self, shown: Option<&Self>) -> String {
        let Some(shown) = shown.filter(|shown| !self.may_lack_changes_since(shown)) else {
            return self.whole();
        };
        let (now, before) = (self.by_id(), shown.by_id());
        let removed = shown.rows.iter().filter(|row| {
            let is_here = now.contains_key(row.id());
            !is_here && self.reaches(&row.place)
        });
        let mut frames: String = removed
            .map(|row| sse::conversation_removed(row.listed.conversation.name()))
            .collect();
        // The first row of the list comes last, so that a reader may put each changed one at the front.
        for row in self.rows.iter().rev() {
            let is_known = before
                .get(row.id())
                .is_some_and(|old| Arc::ptr_eq(old, row));
            if !is_known {
                frames.push_str(&sse::conversation_changed(&row.json));
            }
        }
        frames
    }

    fn whole(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(|row| &*row.json).collect();
        sse::list(&rows, self.next_before.as_deref())
    }

    /// True when more conversations may have changed since than are in this list: each of it is newer than all of `shown`.
    fn may_lack_changes_since(&self, shown: &Self) -> bool {
        let newest = shown.rows.first().map(|row| &row.place);
        let oldest = self.rows.last().map(|row| &row.place);
        self.next_before.is_some() && oldest > newest
    }

    /// True when a conversation at this place would be in the list.
    fn reaches(&self, place: &ListPlace) -> bool {
        let oldest = self.rows.last();
        self.next_before.is_none() || oldest.is_some_and(|oldest| *place > oldest.place)
    }

    fn by_id(&self) -> HashMap<&str, &Arc<Row>> {
        self.rows.iter().map(|row| (row.id(), row)).collect()
    }
}

impl Row {
    fn new(listed: ListedConversation) -> Option<Self> {
        let json = to_raw_value(&ListedConversationBody::from(listed.clone()));
        let json = json.inspect_err(|error| tracing::error!(%error, "a row has no JSON form"));
        Some(Self {
            place: listed.conversation.place(),
            json: json.ok()?,
            listed,
        })
    }

    fn id(&self) -> &str {
        &self.place.id
    }
}
