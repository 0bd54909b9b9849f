//! Payloads typed by people.

use serde::{Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;
use temporalio_common::{
    data_converters::{PayloadConversionError, SerializationContext, TemporalDeserializable},
    protos::temporal::api::common::v1::Payload,
};

use crate::{payload, words::PayloadRefusal};

/// A payload, or the reason why the payload does not decode.
///
/// Temporal would retry a workflow task for ever if the task fails to decode a workflow's input or a signal. Decoding
/// into `Lenient` always succeeds, also for a payload that the worker's codec refuses. The workflow then names the mistake
/// and ends (input), or ignores the payload (signal).
#[derive(Debug, Clone)]
pub struct Lenient<T>(pub Result<T, String>, Option<Payload>);

impl<T> From<T> for Lenient<T> {
    fn from(value: T) -> Self {
        Self(Ok(value), None)
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

impl<T> Lenient<T> {
    /// Returns the reason why a workflow must not take the payload. `label` is the label of the workflow's tenant.
    pub fn refusal(&self, label: &str) -> Option<PayloadRefusal> {
        let head = self.1.as_ref()?;
        payload::refusal(head, label)
    }

    /// Returns the reason why the codec could not open the payload.
    pub fn unopened(&self) -> Option<PayloadRefusal> {
        self.1.as_ref().and_then(payload::unopened)
    }
}

impl<T: DeserializeOwned> Lenient<T> {
    /// Decodes a JSON value.
    pub fn of_json(value: Value) -> Self {
        let decoded = serde_json::from_value(value);
        Self(decoded.map_err(|error| error.to_string()), None)
    }

    fn of_payload(mut payload: Payload) -> Self {
        let value = match payload::unopened(&payload) {
            Some(refusal) => Err(refusal.text().to_owned()),
            None => payload::json(&payload),
        };
        // The metadata decides about a refusal.
        payload.data = Vec::new();
        Self(value, Some(payload))
    }
}

// The type must not implement `Deserialize`: the SDK would then decode the JSON itself, and fail the workflow task for a
// payload without JSON.
impl<T: DeserializeOwned> TemporalDeserializable for Lenient<T> {
    fn from_payload(
        _: &SerializationContext<'_>,
        payload: Payload,
    ) -> Result<Self, PayloadConversionError> {
        Ok(Self::of_payload(payload))
    }

    fn from_payloads(
        _: &SerializationContext<'_>,
        mut payloads: Vec<Payload>,
    ) -> Result<Self, PayloadConversionError> {
        let count = payloads.len();
        Ok(match payloads.pop() {
            Some(payload) if count == 1 => Self::of_payload(payload),
            Some(_) | None => Self(Err(format!("{count} payloads instead of one")), None),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use temporalio_common::data_converters::{
        GenericPayloadConverter, PayloadConverter, SerializationContextData,
    };

    use super::*;
    use crate::turn::{Cancel, ResolveApproval, Submit, ToolResultStored, TurnInput};

    /// Decodes payloads as the SDK does.
    fn decode(payloads: Vec<Payload>) -> Lenient<Submit> {
        let converter = PayloadConverter::default();
        let data = SerializationContextData::None;
        let context = SerializationContext::new(&data, &converter);
        converter.from_payloads(&context, payloads).unwrap()
    }

    fn of_encoding(encoding: &str, data: &[u8]) -> Payload {
        let encoding = ("encoding".to_owned(), encoding.as_bytes().to_vec());
        Payload {
            metadata: [encoding].into(),
            data: data.to_vec(),
            ..Payload::default()
        }
    }

    fn of_text<T: DeserializeOwned>(text: &str) -> Lenient<T> {
        Lenient::of_json(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_sdk_gets_a_value_of_any_payloads() {
        let hello = || of_encoding("json/plain", br#"{"content":"hi"}"#);
        let taken = decode(vec![hello()]);
        assert_eq!(taken.0.unwrap().content.as_deref(), Some("hi"));
        let deep = "[".repeat(1000);
        for wrong in [
            vec![],
            vec![hello(), hello()],
            vec![of_encoding("json/plain", b"{")],
            vec![of_encoding("json/plain", deep.as_bytes())],
            vec![of_encoding("binary/plain", b"hi")],
            vec![of_encoding("binary/null", b"")],
            vec![Payload::default()],
        ] {
            let taken = decode(wrong);
            assert_eq!(taken.refusal("acme"), None);
            assert!(taken.0.is_err(), "{taken:?}");
        }
    }

    #[test]
    fn a_refused_payload_tells_the_reason() {
        let refused = decode(vec![payload::refused(&PayloadRefusal::InClear)]);
        assert_eq!(refused.refusal("acme"), Some(PayloadRefusal::InClear));
        assert!(refused.0.unwrap_err().contains("`require`"));
        let sealed = decode(vec![of_encoding(payload::ENCRYPTED, b"sealed")]);
        assert_eq!(sealed.refusal("acme"), Some(PayloadRefusal::NoKey));
        let hello = of_encoding("json/plain", br#"{"content":"hi"}"#);
        let foreign = decode(vec![payload::opened_for(hello, "beta".to_owned())]);
        assert_eq!(foreign.refusal("beta"), None);
        assert_eq!(foreign.refusal("acme"), Some(PayloadRefusal::ForeignTenant));
    }

    /// The edit of an approver must arrive as the approver wrote the edit.
    #[test]
    fn an_input_keeps_its_text() {
        let input = r#"{ "n":12345678901234567890123, "b":9007199254740993,"a": 1.50 }"#;
        let text =
            format!(r#"{{"execution_id":"exec_1","decision":"approve","tool_input":{input}}}"#);
        let payloads = vec![of_encoding("json/plain", text.as_bytes())];
        let converter = PayloadConverter::default();
        let data = SerializationContextData::None;
        let context = SerializationContext::new(&data, &converter);
        let taken: Lenient<ResolveApproval> = converter.from_payloads(&context, payloads).unwrap();
        assert_eq!(taken.0.unwrap().tool_input.unwrap().as_str(), input);
    }

    #[test]
    fn says_what_is_wrong_instead_of_failing() {
        let wrong: Lenient<Submit> = of_text(r#"{"content":5}"#);
        assert!(wrong.0.unwrap_err().contains("string"));
        let array: Lenient<Submit> = of_text("[1]");
        assert!(array.0.is_err());
    }

    #[test]
    fn ignores_unknown_fields_and_defaults_missing_ones() {
        let submit: Lenient<Submit> = of_text(r#"{"content":"hi","later":true}"#);
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
                let taken: Lenient<T> = Lenient::of_json(value.clone());
                if let Ok(taken) = taken.0 {
                    // What was understood is understood again: continue-as-new carries it.
                    let text = serde_json::to_string(&taken).unwrap();
                    assert!(of_text::<T>(&text).0.is_ok(), "{text}");
                }
            }
            take::<TurnInput>(&value);
            take::<Submit>(&value);
            take::<Cancel>(&value);
            take::<ToolResultStored>(&value);
            take::<ResolveApproval>(&value);
            let answer: Lenient<ResolveApproval> = Lenient::of_json(value);
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
