//! Row types of the two back ends. A type of [`crate::api`] or [`crate::batch`] with columns as its fields is read
//! directly, and has no row type here.

pub(crate) mod blobs;
pub(crate) mod budgets;
pub(crate) mod conversations;
pub(crate) mod ranked;
pub(crate) mod tools;
pub(crate) mod turns;
