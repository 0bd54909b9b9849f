//! The empty tables as bytes, so that a process migrates only its first store in memory. A copy of the bytes is faster than a
//! migration.

use sqlx::{SqlitePool, sqlite::SqliteOwnedBuf};
use tokio::sync::OnceCell;

use super::migrate;
use crate::api::Result;

/// The file of a database that was migrated and never used.
static EMPTY: OnceCell<SqliteOwnedBuf> = OnceCell::const_new();

/// Makes the tables of a database in memory. The pool must have one connection.
pub(super) async fn fill(pool: &SqlitePool) -> Result<()> {
    let empty = EMPTY.get_or_try_init(|| migrated(pool)).await?;
    let copy = SqliteOwnedBuf::try_from(&**empty)?;
    let mut connection = pool.acquire().await?;
    Ok(connection.deserialize(None, copy, false).await?)
}

async fn migrated(pool: &SqlitePool) -> Result<SqliteOwnedBuf> {
    migrate(pool).await?;
    Ok(pool.acquire().await?.serialize(None).await?)
}
