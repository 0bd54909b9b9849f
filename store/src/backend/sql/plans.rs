//! Texts about work plans.

use super::SqlText;

/// `$1` conversation, `$2` list of ids.
pub(crate) const PLANS: SqlText = among!(
    "SELECT id, title, steps FROM work_plans WHERE conversation_id = $1 AND id",
    "$2",
    ""
);

/// The rows to insert follow this text, and then [`OR_UPDATE_PLANS`].
pub(crate) const INSERT_PLANS: &str = "INSERT INTO work_plans (conversation_id, id, message_id, title, steps, created_at, updated_at) ";

/// Follows the rows of [`INSERT_PLANS`].
pub(crate) const OR_UPDATE_PLANS: &str = " ON CONFLICT (conversation_id, id) DO UPDATE SET \
     title = excluded.title, steps = excluded.steps, updated_at = excluded.updated_at";
