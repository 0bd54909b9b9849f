//! The types of columns: times to the millisecond, and signed numbers of 64 bits, because PostgreSQL has no unsigned
//! numbers.
//!
//! A number outside the range of its field is an error of decoding, hence [`StoreError::Corrupt`].

use chrono::{DateTime, SubsecRound, Utc};

use crate::error::{Result, StoreError};

/// Returns the present time to the millisecond, the precision of columns and of the wire. A cursor or an event
/// therefore reads alike before and after it was stored.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// Returns a stored number as a number of 32 bits.
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

/// A time in milliseconds of the Unix epoch as text, which may be missing.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct MaybeMilliseconds(Option<String>);

impl TryFrom<MaybeMilliseconds> for Option<DateTime<Utc>> {
    type Error = StoreError;

    fn try_from(time: MaybeMilliseconds) -> Result<Self> {
        let Some(text) = time.0 else { return Ok(None) };
        let time = text.parse().ok().and_then(DateTime::from_timestamp_millis);
        let corrupt = || StoreError::Corrupt(format!("`{text}` where milliseconds were expected"));
        time.ok_or_else(corrupt).map(Some)
    }
}

/// A sum. A sum past 32 bits becomes the largest number, because sums are only for reading and must not stop a turn
/// from ending.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct Sum(i64);

impl From<Sum> for u32 {
    fn from(sum: Sum) -> Self {
        Self::try_from(sum.0).unwrap_or(Self::MAX)
    }
}

/// A sum of money, which may be missing and is never negative.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct MaybeSum(Option<i64>);

impl From<MaybeSum> for Option<u64> {
    fn from(sum: MaybeSum) -> Self {
        sum.0.map(|sum| u64::try_from(sum).unwrap_or_default())
    }
}

/// Returns a number for a column. A number past the column's range becomes the largest number.
pub(crate) fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
