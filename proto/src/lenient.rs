//! Payloads typed by people.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// A payload, or the reason why the payload does not decode.
///
/// Temporal would retry a workflow task for ever if the task fails to decode a workflow's input or a signal. Decoding
/// into `Lenient` always succeeds. The workflow then names the mistake and ends (input), or ignores the payload (signal).
#[derive(Debug, Clone)]
pub struct Lenient<T>(pub Result<T, String>);

impl<T> From<T> for Lenient<T> {
    fn from(value: T) -> Self {
        Self(Ok(value))
    }
}

impl<T: Serialize> Serialize for Lenient<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(value) => value.serialize(serializer),
            Err(_) => serializer.serialize_unit(),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(
            serde_json::from_value(value).map_err(|error| error.to_string()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::Lenient;
    use crate::turn::{Cancel, ResolveApproval, Submit, ToolResultStored, TurnInput};

    #[test]
    fn says_what_is_wrong_instead_of_failing() {
        let wrong: Lenient<Submit> = serde_json::from_str(r#"{"content":5}"#).unwrap();
        assert!(wrong.0.unwrap_err().contains("string"));
        let array: Lenient<Submit> = serde_json::from_str("[1]").unwrap();
        assert!(array.0.is_err());
    }

    #[test]
    fn ignores_unknown_fields_and_defaults_missing_ones() {
        let submit: Lenient<Submit> =
            serde_json::from_str(r#"{"content":"hi","later":true}"#).unwrap();
        let submit = submit.0.unwrap();
        assert_eq!(
            (submit.content.as_deref(), submit.on_busy.as_deref()),
            (Some("hi"), None)
        );
    }

    proptest! {
        /// What fails to decode would fail the workflow's task for ever.
        #[test]
        fn any_json_is_taken_by_every_signal_update_and_input(value in payloads()) {
            fn take<T: serde::Serialize + serde::de::DeserializeOwned>(value: &Value) {
                let taken: Lenient<T> = serde_json::from_value(value.clone()).unwrap();
                if let Ok(taken) = taken.0 {
                    // What was understood is understood again: continue-as-new carries it.
                    let text = serde_json::to_string(&taken).unwrap();
                    assert!(serde_json::from_str::<Lenient<T>>(&text).unwrap().0.is_ok(), "{text}");
                }
            }
            take::<TurnInput>(&value);
            take::<Submit>(&value);
            take::<Cancel>(&value);
            take::<ToolResultStored>(&value);
            take::<ResolveApproval>(&value);
            let answer: Lenient<ResolveApproval> = serde_json::from_value(value).unwrap();
            if let Ok(answer) = answer.0 {
                let _ = answer.flaw();
            }
        }
    }

    /// Objects with the fields of the payloads, each with any value.
    fn payloads() -> impl Strategy<Value = Value> {
        const NAMES: [&str; 14] = [
            "conversation_id",
            "message_id",
            "content",
            "on_busy",
            "has_waiting",
            "reason",
            "message",
            "goes_on",
            "from_step",
            "epoch",
            "execution_id",
            "decision",
            "tool_input",
            "delegation",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
            Just(Value::from("approve")),
        ];
        leaf.prop_recursive(4, 30, 6, |inner| {
            let name = prop_oneof![
                prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
                "[a-z]{0,4}"
            ];
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                3 => prop::collection::hash_map(name, inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }
}
