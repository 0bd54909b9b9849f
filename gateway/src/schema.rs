//! The smallest schemas of the OpenAPI document. Endpoints and the frames of a stream share them.

use everturn_proto::limits::MAX_ID_BYTES;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type},
    },
};

/// An id of a conversation or a message.
pub(crate) struct Id;

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_ID_BYTES))
            // Every text of these characters but `.` and `..`.
            .pattern(Some(r"^(\.{0,2}[A-Za-z0-9_:-]|\.{3})[A-Za-z0-9._:-]*$"))
            .description(Some(
                "Part of workflow ids and of paths, and therefore neither `.` nor `..`.",
            ))
            .examples(["talk-1"])
            .into()
    }
}

impl ToSchema for Id {}

/// The number of an event in its conversation.
pub(crate) struct Sequence;

impl PartialSchema for Sequence {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .maximum(Some(u32::MAX))
            .description(Some(
                "The number of an event in the conversation: 1, 2, 3, without gaps. 0 is before the first event.",
            ))
            .into()
    }
}

impl ToSchema for Sequence {}

/// A reader's cursor in an event log, as text.
pub(crate) struct CursorText;

impl PartialSchema for CursorText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(CURSOR_PATTERN))
            .description(Some(
                "The `id` of an event's frame: the event's sequence number and the time of saving. The number alone is a \
                 cursor, too, but only the whole `id` shows whether the event log was replaced.",
            ))
            .examples(["50-19a8f3c2b10", "50"])
            .into()
    }
}

impl ToSchema for CursorText {}

/// The pattern of a cursor. Both numbers may have one digit less than the parser's largest number, and therefore the
/// parser reads every matching text.
const CURSOR_PATTERN: &str = "^[0-9]{1,9}(-[0-9a-f]{1,15})?$";

/// Makes the schema of a string with a fixed list of words.
pub(crate) fn one_of(words: &[&str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .build()
}
