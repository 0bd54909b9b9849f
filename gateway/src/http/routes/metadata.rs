//! The metadata of a conversation: a small map of texts, of which providers get the part that the operator chooses.

use std::collections::BTreeMap;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use crate::http::problem::{Code, Problem};

/// The metadata of a conversation.
pub(super) type Metadata = BTreeMap<String, String>;

/// The limits of OpenAI's metadata. The map is read for each call of a model, and is a part of the call.
const MAX_KEYS: usize = 16;
const MAX_KEY_CHARS: usize = 64;
const MAX_VALUE_CHARS: usize = 512;

/// The schema of the metadata.
pub(super) struct MetadataMap;

impl PartialSchema for MetadataMap {
    fn schema() -> RefOr<Schema> {
        let value = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(MAX_VALUE_CHARS))
            .pattern(Some(r"^[^\u0000-\u001f\u007f-\u009f]*$"));
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^[A-Za-z0-9_.-]{1,64}$"));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(key))
            .additional_properties(Some(RefOr::T(Schema::Object(value.build()))))
            .max_properties(Some(MAX_KEYS))
            .description(Some(
                "Texts of the conversation for its LLM calls. The operator decides which of the texts a provider gets.",
            ))
            .examples([serde_json::json!({"plan": "gold"})])
            .into()
    }
}

impl ToSchema for MetadataMap {
    fn name() -> std::borrow::Cow<'static, str> {
        "Metadata".into()
    }
}

/// Checks the metadata of a request.
pub(super) fn checked(metadata: Metadata) -> Result<Metadata, Problem> {
    let is_key = |key: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        (1..=MAX_KEY_CHARS).contains(&key.len()) && key.chars().all(is_allowed)
    };
    let is_value = |value: &str| {
        value.chars().count() <= MAX_VALUE_CHARS && !value.chars().any(char::is_control)
    };
    let is_right = metadata.len() <= MAX_KEYS
        && metadata
            .iter()
            .all(|(key, value)| is_key(key) && is_value(value));
    if is_right {
        return Ok(metadata);
    }
    Err(Problem::new(
        Code::InvalidBody,
        format!(
            "`metadata` may have at most {MAX_KEYS} keys of 1 to {MAX_KEY_CHARS} letters, digits, `_`, `-` and `.`. A value may \
             have at most {MAX_VALUE_CHARS} characters, and no control characters."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, value: &str) -> Metadata {
        [(key.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn metadata_is_a_small_map_of_texts() {
        let largest = of(&"k".repeat(64), &"ä".repeat(512));
        assert!(checked(largest).is_ok());
        assert!(checked(of("a.b-c_1", "")).is_ok());
        let many: Metadata = (0..17).map(|n| (format!("k{n}"), String::new())).collect();
        for wrong in [
            of("", "x"),
            of("a b", "x"),
            of(&"k".repeat(65), "x"),
            of("k", &"x".repeat(513)),
            of("k", "a\nb"),
            many,
        ] {
            assert!(checked(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
