//! JSON as a parameter of PostgreSQL's statements.

use serde::Serialize;
use sqlx::{
    Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo, types::Oid},
};

/// A parameter with JSON for a column of PostgreSQL's type `json`. The database keeps the text as written, character for
/// character, as SQLite does. The type `jsonb` would sort the keys, drop repeated keys, and write numbers out.
pub(crate) struct JsonText<T>(pub(crate) T);

/// The id of PostgreSQL's type `json`.
const JSON_OID: Oid = Oid(114);

impl<T> Type<Postgres> for JsonText<T> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSON_OID)
    }
}

impl<T: Serialize> Encode<'_, Postgres> for JsonText<T> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        serde_json::to_writer(&mut **buffer, &self.0)?;
        Ok(IsNull::No)
    }
}
