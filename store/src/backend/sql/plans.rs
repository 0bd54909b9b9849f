//! Texts about work plans.

use super::SqlText;

/// `$1` conversation, `$2` list of ids.
pub(crate) const PLANS: SqlText = among!(
    "SELECT id, title, steps FROM work_plans WHERE conversation_id = $1 AND id",
    "$2",
    ""
);

/// Ends an insert of plans.
pub(crate) const OR_UPDATE_PLANS: &str = " ON CONFLICT (conversation_id, id) DO UPDATE SET \
     title = excluded.title, steps = excluded.steps, updated_at = excluded.updated_at";
