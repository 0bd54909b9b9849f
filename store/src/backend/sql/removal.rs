//! Texts about tombstones of deleted conversations.

use super::SqlText;

/// `$1` id, `$2` now.
pub(crate) const INSERT_DELETED: &str = "INSERT INTO deleted_conversations (id, deleted_at) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at";

macro_rules! deleted_before {
    () => {
        "SELECT id FROM deleted_conversations WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2"
    };
}

/// `$1` before, `$2` limit. Skips rows that another transaction is removing.
pub(crate) const FORGET_DELETED: SqlText = SqlText {
    sqlite: concat!(
        "DELETE FROM deleted_conversations WHERE id IN (",
        deleted_before!(),
        ")"
    ),
    postgres: concat!(
        "DELETE FROM deleted_conversations WHERE id IN (",
        deleted_before!(),
        " FOR UPDATE SKIP LOCKED)"
    ),
};

/// `$1` id.
pub(crate) const IS_DELETED: &str = "SELECT COUNT(*) FROM deleted_conversations WHERE id = $1";
