//! What columns hold: times to the millisecond, and signed numbers of 64 bits, because PostgreSQL has no unsigned ones.
//!
//! A number that does not fit its field is an error of decoding, hence [`StoreError::Corrupt`].

use chrono::{DateTime, SubsecRound, Utc};

use crate::error::{Result, StoreError};

/// Returns the time as it is stored: to the millisecond, the precision of the wire, so that a place in a list or an
/// event reads the same before and after it was stored.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// Returns a stored number as one of 32 bits.
pub(crate) fn narrow(number: i64) -> Result<u32> {
    u32::try_from(number)
        .map_err(|_| StoreError::Corrupt(format!("{number} where 32 bits were expected")))
}

/// A number that may be missing.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct MaybeNumber(Option<i64>);

impl TryFrom<MaybeNumber> for Option<u32> {
    type Error = StoreError;

    fn try_from(number: MaybeNumber) -> Result<Self> {
        number.0.map(narrow).transpose()
    }
}

/// A sum. Past 32 bits it stays at the largest number: sums are for reading, and must not stop a turn from ending.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct Sum(i64);

impl From<Sum> for u32 {
    fn from(sum: Sum) -> Self {
        Self::try_from(sum.0).unwrap_or(Self::MAX)
    }
}

/// A sum of money that may be missing. It is never negative.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct MaybeSum(Option<i64>);

impl From<MaybeSum> for Option<u64> {
    fn from(sum: MaybeSum) -> Self {
        sum.0.map(|sum| u64::try_from(sum).unwrap_or_default())
    }
}

/// Returns a number as a column takes it. A larger one than a column has stays at the largest.
pub(crate) fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
