//! Types of the rows that both back ends read. Where the columns are the fields of a type of [`crate::api`] or
//! [`crate::batch`], that type is read directly and has no row type here.

pub(crate) mod blobs;
pub(crate) mod budgets;
pub(crate) mod conversations;
pub(crate) mod measured;
pub(crate) mod tools;
pub(crate) mod turns;
