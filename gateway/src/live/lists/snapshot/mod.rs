//! A conversation list at one moment, and the frames for a reader with an earlier snapshot.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use everturn_store::{ListCursor, ListPage, ListVersion, ListedConversation};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    listed::{ListedConversationBody, list_cursor},
    live::sse,
};

/// The newest conversations of a list at one moment.
#[derive(Debug)]
pub(super) struct ListSnapshot {
    /// The version of the list before the read of the rows.
    version: ListVersion,
    /// The conversations, with the last active conversation first.
    rows: Vec<Arc<Row>>,
    /// The cursor of older conversations; `None` without older conversations.
    next_before: Option<String>,
}

/// A conversation, and its JSON form.
#[derive(Debug)]
struct Row {
    cursor: ListCursor,
    listed: ListedConversation,
    json: Box<RawValue>,
}

impl ListSnapshot {
    /// Makes a snapshot of a page that was read after `version`. The snapshot shares unchanged rows with `earlier`.
    pub(super) fn new(page: ListPage, version: ListVersion, earlier: Option<&Self>) -> Self {
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
            version,
            next_before: next.map(list_cursor),
            rows: page.conversations.into_iter().filter_map(row).collect(),
        }
    }

    /// Returns the version of the list before the read of the rows.
    pub(super) fn version(&self) -> ListVersion {
        self.version
    }

    /// Returns the frames for a reader with the snapshot `shown`: the whole list, or the changes after `shown`. The
    /// result is empty without a change.
    pub(super) fn frames_since(&self, shown: Option<&Self>) -> String {
        let Some(shown) = shown.filter(|shown| !self.may_lack_changes_since(shown)) else {
            return self.whole();
        };
        let (now, before) = (self.by_id(), shown.by_id());
        let removed = shown.rows.iter().filter(|row| {
            let is_here = now.contains_key(row.id());
            !is_here && self.reaches(&row.cursor)
        });
        let mut frames: String = removed
            .map(|row| sse::conversation_removed(row.listed.conversation.name()))
            .collect();
        // The first row of the list comes last, so a reader may move every changed conversation to the front.
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

    /// Returns true when the list may lack changes after `shown`: the list has more pages, and all its rows are newer
    /// than the rows of `shown`.
    fn may_lack_changes_since(&self, shown: &Self) -> bool {
        let newest = shown.rows.first().map(|row| &row.cursor);
        let oldest = self.rows.last().map(|row| &row.cursor);
        self.next_before.is_some() && oldest > newest
    }

    /// Returns true when a conversation with the rank `cursor` would be in the list.
    fn reaches(&self, cursor: &ListCursor) -> bool {
        let oldest = self.rows.last();
        self.next_before.is_none() || oldest.is_some_and(|oldest| *cursor > oldest.cursor)
    }

    fn by_id(&self) -> HashMap<&str, &Arc<Row>> {
        self.rows.iter().map(|row| (row.id(), row)).collect()
    }
}

impl Row {
    fn new(listed: ListedConversation) -> Option<Self> {
        let json = to_raw_value(&ListedConversationBody::from(listed.clone()));
        let json =
            json.inspect_err(|error| tracing::error!(%error, "a row cannot be written as JSON"));
        Some(Self {
            cursor: listed.conversation.cursor(),
            json: json.ok()?,
            listed,
        })
    }

    fn id(&self) -> &str {
        &self.cursor.id
    }
}
