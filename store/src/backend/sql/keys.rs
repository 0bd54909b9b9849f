//! Texts about API keys and browser sessions.

use chrono::{DateTime, Utc};

use super::Statement;
use crate::api::NewKey;

/// Selects keys. A session counts as revoked when the key that opened the session is revoked.
macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, k.kind, k.parent_id, k.secret_hash, k.tenant_id, k.owner_id, k.scopes, k.name, k.created_at, k.expires_at, \
             COALESCE(k.revoked_at, p.revoked_at) AS revoked_at, k.last_used_at \
             FROM api_keys k LEFT JOIN api_keys p ON p.id = k.parent_id WHERE ",
            $rest
        )
    };
}

/// Inserts a key, or no row when the id is taken.
pub(crate) fn insert(new: &NewKey, now: DateTime<Utc>) -> Statement {
    sqlx::query(
        "INSERT INTO api_keys \
         (id, kind, parent_id, secret_hash, tenant_id, owner_id, scopes, name, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING",
    )
    .bind(&new.id)
    .bind(new.kind.as_str())
    .bind(&new.parent_id)
    .bind(&new.secret_hash)
    .bind(&new.access.tenant_id)
    .bind(&new.access.owner_id)
    .bind(&new.scopes)
    .bind(&new.name)
    .bind(now)
    .bind(new.expires_at)
}

/// `$1` id.
pub(crate) const KEY: &str = select_keys!("k.id = $1");

/// `$1` kind, `$2` after this id, `$3` tenant or none for every tenant, `$4` limit.
pub(crate) const KEYS: &str = select_keys!(
    "k.kind = $1 AND k.id > $2 AND (CAST($3 AS TEXT) IS NULL OR k.tenant_id = $3) ORDER BY k.id LIMIT $4"
);

/// `$1` id, `$2` now.
pub(crate) const REVOKE_KEY: &str =
    "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";

/// `$1` id, `$2` now, `$3` time. Changes no row when a use after `$3` is noted already.
pub(crate) const TOUCH_KEY: &str = "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)";

/// `$1` key, `$2` number of sessions that stay, `$3` limit.
pub(crate) const END_OLDEST_OF_KEY: &str = "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys \
     WHERE parent_id = $1 ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $2)";

/// `$1` tenant, `$2` owner, `$3` number of sessions that stay, `$4` limit. The statement reads
/// every open session, which is acceptable because people sign in rarely.
pub(crate) const END_OLDEST_OF_OWNER: &str = "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys \
     WHERE kind = 'session' AND parent_id IS NULL AND tenant_id = $1 AND owner_id = $2 \
     ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $3)";

/// `$1` before, `$2` limit.
pub(crate) const REMOVE_ENDED_SESSIONS: &str = "DELETE FROM api_keys WHERE id IN \
     (SELECT id FROM api_keys WHERE kind = 'session' AND expires_at < $1 ORDER BY expires_at LIMIT $2)";
