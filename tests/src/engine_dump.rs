//! Everything that is in the PostgreSQL of a production Temporal server, and in a Redis, as text.

use base64::{Engine, engine::general_purpose::STANDARD};
use sqlx::{AssertSqlSafe, PgPool, Row};

use crate::{postgres, stack::Stack};

/// The databases of a production server.
const DATABASES: [&str; 2] = ["temporal", "temporal_visibility"];

/// Returns everything that the engine of the tests on the production backends keeps.
pub async fn dump() -> String {
    let mut text = String::new();
    let server = postgres::shared().await;
    for database in DATABASES {
        text.push_str(&of_postgres(&server.url(database)).await);
    }
    text
}

async fn of_postgres(url: &str) -> String {
    let pool = PgPool::connect(url).await.unwrap();
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    let tables = sqlx::query(tables).fetch_all(&pool).await.unwrap();
    let mut text = String::new();
    for table in tables {
        let table: String = table.get(0);
        let rows = AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&pool).await.unwrap();
        text.extend(rows.into_iter().map(|row| format!("{table}: {row}\n")));
    }
    text
}

/// Reads every key of a Redis, whatever its type.
const EVERYTHING: &str = "EVAL \"local all = {} for _, key in ipairs(redis.call('KEYS', '*')) do \
    local kind = redis.call('TYPE', key).ok local value = {} \
    if kind == 'string' then value = {redis.call('GET', key)} elseif kind == 'hash' then value = redis.call('HGETALL', key) \
    elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1) elseif kind == 'set' then value = redis.call('SMEMBERS', key) \
    elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1) else value = {kind} end \
    all[#all + 1] = key .. ' ' .. table.concat(value, ' ') end return table.concat(all, ' ')\" 0";

/// Returns everything that is in the Redis of a stack.
pub async fn of_redis(stack: &Stack) -> String {
    stack.redis().command(EVERYTHING).await.unwrap()
}

/// Returns the texts that hold a word: itself, and as bytes in histories and databases are written.
pub fn forms(word: &str) -> Vec<String> {
    // Base64 of a longer text depends on where in it the word begins.
    let shifted = (0..3).map(|start| {
        let whole = (word.len() - start) / 3 * 3;
        STANDARD.encode(&word[start..start + whole])
    });
    let written: Vec<_> = [word.to_owned()].into_iter().chain(shifted).collect();
    let digits: Vec<_> = written.iter().map(hex::encode).collect();
    written.into_iter().chain(digits).collect()
}
