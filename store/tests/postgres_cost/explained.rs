//! Reads from a statement's plan what PostgreSQL does for it.

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

/// What PostgreSQL did for a statement.
#[derive(Debug, Default)]
pub(super) struct Did {
    /// The type of each node of the plan, with its index.
    nodes: Vec<String>,
    /// Rows of tables that were found with indexes.
    rows_read: u64,
    /// Rows that were read and then thrown away.
    rows_dropped: u64,
    rows_returned: u64,
    /// Pages of 8 KiB that were read.
    pub(super) pages: u64,
}

impl Did {
    fn of(explained: &Value) -> Self {
        let plan = &explained[0]["Plan"];
        let pages = number(&plan["Shared Hit Blocks"]) + number(&plan["Shared Read Blocks"]);
        let mut did = Self {
            rows_returned: number(&plan["Actual Rows"]),
            pages,
            ..Self::default()
        };
        did.add(plan);
        did
    }

    fn add(&mut self, node: &Value) {
        let kind = node["Node Type"].as_str().unwrap();
        self.nodes.push(
            format!("{kind} {}", node["Index Name"].as_str().unwrap_or_default())
                .trim()
                .to_owned(),
        );
        if node["Relation Name"].is_string() && kind != "ModifyTable" {
            self.rows_read += number(&node["Actual Rows"]) * number(&node["Actual Loops"]);
        }
        self.rows_dropped += number(&node["Rows Removed by Filter"]);
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }
}

impl Did {
    /// Checks that no table was read from its beginning.
    pub(super) fn check_indexes(&self, name: &str) {
        assert!(
            !self.nodes.iter().any(|node| node == "Seq Scan"),
            "{name}: {self:?}"
        );
    }

    pub(super) fn check(&self, name: &str, most_rows: u64) {
        self.check_indexes(name);
        assert!(
            self.rows_read <= most_rows && self.rows_dropped == 0,
            "{name}: {self:?}"
        );
        // Each row needs at most one page of the table, and each look-up a few pages of an index.
        assert!(self.pages <= 2 * most_rows + 40, "{name}: {self:?}");
        if name.contains("page") {
            // Each row is read twice, to add up its length and to return it, because to add up rows with their texts takes
            // longer. Two more rows are read: the conversation, to check that the caller may see it, and the agent
            // execution that runs, for its newest generation, which a page that was read backwards does not have.
            let beside = if name.contains("backwards") { 1 } else { 2 };
            let rows_read = 2 * self.rows_returned + beside;
            assert_eq!(self.rows_read, rows_read, "{name}: {self:?}");
            assert!(
                !self.nodes.iter().any(|node| node.contains("Sort")),
                "{name}: {self:?}"
            );
        }
    }
}

/// Reads a number. Counts of rows are whole numbers as long as a node runs once, which every node here does.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Runs and explains `text` as the store's connections do: with a plan made for these values, and with the plan that a
/// prepared statement gets after some uses.
pub(super) async fn explain(
    connection: &mut PgConnection,
    text: &str,
    types: &str,
    values: &str,
) -> [Did; 2] {
    let mut done = Vec::new();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let setup =
            format!("BEGIN; SET LOCAL plan_cache_mode = {mode}; PREPARE q ({types}) AS {text}");
        sqlx::raw_sql(AssertSqlSafe(setup))
            .execute(&mut *connection)
            .await
            .unwrap();
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE q ({values})");
        let plan: Value = sqlx::query_scalar(AssertSqlSafe(explain))
            .persistent(false)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        sqlx::raw_sql("ROLLBACK; DEALLOCATE q")
            .execute(&mut *connection)
            .await
            .unwrap();
        done.push(Did::of(&plan));
    }
    done.try_into().unwrap()
}
