//! Checks the plans of the reads of failures.

use everturn_store::hot;

use crate::explained::explain;

/// Half of the ended turns have failed. A page reads its own rows alone, and a count no more than its limit, once
/// PostgreSQL has statistics of the failures.
pub(super) async fn explain_failures(connection: &mut sqlx::PgConnection) {
    let fail = "UPDATE agent_executions SET status = 'failed', error_code = 'a_code', \
                finished_at = now() - interval '1 min' WHERE id LIKE 'e4%' OR id LIKE 'e5%'; ANALYZE agent_executions";
    sqlx::raw_sql(fail).execute(&mut *connection).await.unwrap();
    let period = "now() - interval '1 day', now()";
    for (name, last_type, last) in [
        ("failures", "", ""),
        ("failures_of_tenant", ", text", ", 't'"),
    ] {
        let text = hot::postgres(&format!("failures/{name}"));
        let types = format!("timestamptz, timestamptz, text, text, text, bigint{last_type}");
        let values = format!("{period}, '', NULL, NULL, 20{last}");
        for did in explain(connection, text, &types, &values).await {
            println!("{name}: {did:?}");
            did.check(name, 20);
        }
    }
    for (name, last_type, last) in [
        ("failure_counts", "", ""),
        ("failure_counts_of_tenant", ", text", ", 't'"),
    ] {
        let text = hot::postgres(&format!("failures/{name}"));
        let types = format!("timestamptz, timestamptz, text, text, bigint, bigint{last_type}");
        let values = format!("{period}, NULL, NULL, 100, 10{last}");
        for did in explain(connection, text, &types, &values).await {
            println!("{name}: {did:?}");
            did.check(name, 100);
        }
    }
}
