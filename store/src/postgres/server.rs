//! What a pooler in front of the server must do. It is checked before the first call.

use std::collections::BTreeSet;

use sqlx::{Connection, PgConnection, Row};

use super::options;
use crate::{api::Result, error::StoreError};

/// How often two connections are asked which sessions of the server they have. A pooler that other clients use, too, may
/// give both of them the same answers by chance, but hardly so often.
const LOOKS: usize = 3;

/// Connects, and refuses a pooler that gives the statements of one client to several sessions of the server, as
/// PgBouncer does unless its `pool_mode` is `session`. There, the settings and the prepared statements of a connection
/// are gone with the next statement, and those of other clients are met instead.
pub(super) async fn connect(url: &str) -> Result<PgConnection> {
    let mut first = options::connection(url).await?;
    let mut second = options::connection(url).await?;
    let (mut of_first, mut of_second) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..LOOKS {
        of_first.insert(session(&mut first).await?);
        // Whether a pooler takes the session that was used last or the one that was not used for longest: one of these
        // looks finds that both clients have the same one, or that the second client has another one than before.
        of_second.insert(session(&mut second).await?);
        of_second.insert(session(&mut second).await?);
    }
    second.close().await?;
    if of_first.len() == 1 && of_second.len() == 1 && of_first.is_disjoint(&of_second) {
        return Ok(first);
    }
    Err(StoreError::Conflict(
        "the pooler in front of PostgreSQL does not keep a session for each connection, so prepared statements and \
         settings get lost; set it to session mode (PgBouncer: `pool_mode = session`), or connect to PostgreSQL directly"
            .into(),
    ))
}

/// Returns the session of the server that answers. It is asked without a prepared statement, which a pooler may lose.
async fn session(connection: &mut PgConnection) -> Result<i32> {
    let asked = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection);
    Ok(asked.await?.try_get(0)?)
}
