//! The statements about work that waits: for persons, clients, and the reconciler.

use everturn_store::hot;
use sqlx::PgConnection;

use crate::{
    explained::explain,
    plans::{Query, query},
};

pub(crate) fn of_waiting() -> Vec<Query> {
    vec![
        query(
            "calls that wait for someone",
            hot::postgres("outside/waiting_tools"),
            "text, text, text, bigint, bigint",
            "'c5000', 't', NULL, 100, 4194304",
            2,
        ),
        query(
            "inbox of approvals of a tenant",
            hot::postgres("outside/approval_inbox"),
            "text, text, timestamptz, text, text, bigint, bigint",
            "'t', 'o', NULL, '', 'other', 51, 4194304",
            2,
        ),
        query(
            "proposals for a call",
            hot::postgres("outside/proposals"),
            "text[], text[], text, bigint",
            "'{c5000}', '{exec_2}', 'approve', 256",
            1,
        ),
        query(
            "approvals that wait, of every tenant",
            hot::postgres("outside/waiting_approvals"),
            "timestamptz, bigint",
            "now(), 100",
            205,
        ),
        query(
            "due checks of every tenant",
            hot::postgres("reconciliation/count_due"),
            "timestamptz, bigint",
            "now(), 100",
            101,
        ),
        // A check asks for the conversation, the running turn, two kinds of messages, the message of the turn, and the work
        // that goes on.
        query(
            "due checks with the state of their conversations",
            hot::postgres("reconciliation/due_checks"),
            "timestamptz, timestamptz, timestamptz, text, text, text, bigint",
            "now(), now() + interval '1 d', now() + interval '1 d', 'reject', 'pending', 'llm_complete', 100",
            1700,
        ),
        query(
            "hooks that wait for their workflow",
            hot::postgres("reconciliation/due_hooks"),
            "timestamptz, bigint",
            "now(), 100",
            1,
        ),
    ]
}

/// The statements of the schedule look up every row, and read no table from its beginning.
pub(crate) async fn explain_looks(connection: &mut PgConnection) {
    let ids: Vec<_> = (1..=1000).map(|number| format!("c{number}")).collect();
    let ids = ids.join(",");
    let statements = [
        (
            "reconciliation/schedule_checks",
            "text, timestamptz, timestamptz, bigint, bigint",
            "'c2', now(), now() + interval '1 d', 1000, 1000".to_owned(),
        ),
        (
            "reconciliation/note_walk",
            "text, bigint, bigint",
            "'c2', 1000, 999".to_owned(),
        ),
        (
            "reconciliation/end_check",
            "text, text",
            "'c5000', 'e1c5000'".to_owned(),
        ),
        (
            "reconciliation/set_due",
            "timestamptz, text[]",
            format!("now(), '{{{ids}}}'"),
        ),
        (
            "reconciliation/remove_checks",
            "text[]",
            format!("'{{{ids}}}'"),
        ),
    ];
    for (name, types, values) in &statements {
        for did in explain(connection, hot::postgres(name), types, values).await {
            println!("{name}: {did:?}");
            // The only row of the table `reconciler` needs no index.
            if *name != "reconciliation/note_walk" {
                did.check_indexes(name);
            }
        }
    }
}
