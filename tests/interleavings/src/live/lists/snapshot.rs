//! A list at one moment, as the number of changes before the moment.

use everturn_store::{ListPage, ListVersion};

/// A snapshot of a list.
pub(super) struct ListSnapshot {
    /// The number of changes.
    changes: String,
    version: ListVersion,
}

impl ListSnapshot {
    /// Makes a snapshot. The id in the page's cursor is the number of changes.
    pub(super) fn new(page: ListPage, version: ListVersion, _earlier: Option<&Self>) -> Self {
        Self {
            changes: page.next.map_or_else(String::new, |next| next.id),
            version,
        }
    }

    pub(super) fn version(&self) -> ListVersion {
        self.version
    }

    /// Returns the number of changes; an empty text if the reader has seen the number.
    pub(super) fn frames_since(&self, shown: Option<&Self>) -> String {
        let is_seen = shown.is_some_and(|shown| shown.changes == self.changes);
        if is_seen {
            String::new()
        } else {
            self.changes.clone()
        }
    }
}
