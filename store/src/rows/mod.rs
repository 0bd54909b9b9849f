//! Rows as they are read, for both back ends. Where the columns are the fields of a type of [`crate::api`] or
//! [`crate::batch`], that type is read itself; here are the others.

pub(crate) mod conversations;
pub(crate) mod tools;
pub(crate) mod turns;
