//! A disk that is full for a while.

use everturn_store::{EventReader, StoreError, Turns};
use sqlx::AssertSqlSafe;

use crate::{
    SqliteFile,
    conformance::{Backend, fixture::Turn},
};

#[tokio::test]
async fn a_full_disk_is_told_and_the_store_goes_on_when_there_is_room() {
    let file = SqliteFile::fresh().await;
    let store = file.open().await;
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(store.pool())
        .await
        .unwrap();
    let limit = async |pages: i64| {
        let text = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        sqlx::query(text).execute(store.pool()).await.unwrap();
    };

    let turn = Turn::new(store.clone(), "c", "m");
    let large = "x".repeat(1_000_000);
    for _ in 0..2 {
        limit(pages).await;
        let refused = store.begin_turn(turn.begin(&large)).await.unwrap_err();
        assert!(matches!(refused, StoreError::DiskFull(_)), "{refused:?}");
        assert!(refused.is_retryable());
        assert!(refused.to_string().contains("disk"), "{refused}");
        let checked = store.check().await;
        assert!(
            matches!(checked, Err(StoreError::DiskFull(_))),
            "{checked:?}"
        );
    }
    assert_eq!(turn.events().await, [], "readers are not held up");

    limit(pages * 1_000).await;
    store.begin_turn(turn.begin(&large)).await.unwrap();
    store.check().await.unwrap();
    assert_eq!(turn.events().await.len(), 1);
}
