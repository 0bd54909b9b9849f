//! The statements about work that waits: for persons, clients, and the reconciler.

use everturn_store::hot;

use crate::plans::{Query, query};

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
    ]
}
