//! The facts about a caller as fields of the body of each wire.

use serde_json::{Map, Value, json};

use crate::{
    caller::{Caller, CallerFields, CallerText},
    parameters::merge,
    provider::ProviderKind,
};

impl CallerFields {
    /// Adds the fields to the body of a request. A field that the body has already stays.
    pub(crate) fn add_to(&self, body: &mut Value, kind: ProviderKind, caller: &Caller) {
        for (key, mut value) in self.fields(kind, caller) {
            if let Some(earlier) = body.get_mut(&key).map(Value::take) {
                merge(&mut value, earlier);
            }
            body[key] = value;
        }
    }

    /// Returns the fields of the body for a provider of this kind.
    fn fields(&self, kind: ProviderKind, caller: &Caller) -> Map<String, Value> {
        let mut fields = Map::new();
        let user = self.user.as_ref().and_then(|user| user.filled(caller));
        match (kind, user) {
            (ProviderKind::Gemini, _) => return fields,
            (ProviderKind::Anthropic, user) => {
                fields.extend(user.map(|user| ("metadata".to_owned(), json!({"user_id": user}))));
                return fields;
            }
            (_, user) => fields.extend(user.map(|user| ("user".to_owned(), json!(user)))),
        }
        let filled = |(key, text): (&String, &CallerText)| {
            text.filled(caller).map(|text| (key.clone(), json!(text)))
        };
        let mut metadata: Map<String, Value> = self.metadata.iter().filter_map(filled).collect();
        let tags: Vec<_> = self
            .tags
            .iter()
            .filter_map(|tag| tag.filled(caller))
            .collect();
        if !tags.is_empty() {
            metadata.insert("tags".to_owned(), json!(tags));
        }
        if !metadata.is_empty() {
            fields.insert("metadata".to_owned(), Value::Object(metadata));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::ids;

    use super::*;
    use crate::caller::MAX_CHARS;

    fn text(text: &str) -> CallerText {
        CallerText::parse(text).unwrap()
    }

    fn caller() -> Caller {
        Caller {
            tenant_id: "acme".to_owned(),
            owner_id: Some("ann".to_owned()),
            conversation_id: "talk".to_owned(),
            message_id: "msg_1".to_owned(),
            agent: "support".to_owned(),
            metadata: [("plan".to_owned(), "göld\n".to_owned())].into(),
        }
    }

    fn fields() -> CallerFields {
        CallerFields {
            user: Some(text("{owner_hash}")),
            metadata: [
                ("tenant".to_owned(), text("{tenant_id}")),
                ("other".to_owned(), text("{metadata.other}")),
            ]
            .into(),
            tags: vec![text("plan:{metadata.plan}"), text("{metadata.none}")],
            headers: [
                (
                    "x-conversation".to_owned(),
                    text("{conversation_id}/{message_id}"),
                ),
                ("x-plan".to_owned(), text("{metadata.plan}")),
            ]
            .into(),
        }
    }

    #[test]
    fn a_header_has_only_characters_of_headers() {
        let fields = fields();
        let headers: Vec<_> = fields.headers_of(&caller()).collect();
        assert_eq!(
            headers,
            [
                ("x-conversation", "talk/msg_1".to_owned()),
                ("x-plan", "g%C3%B6ld%0A".to_owned())
            ]
        );
    }

    #[test]
    fn callers_of_two_tenants_have_different_hashes() {
        let other = Caller {
            tenant_id: "globex".to_owned(),
            ..caller()
        };
        for placeholder in ["{tenant_hash}", "{owner_hash}", "{conversation_hash}"] {
            let filled = |caller: &Caller| text(placeholder).filled(caller).unwrap();
            assert_ne!(filled(&caller()), filled(&other), "{placeholder}");
            assert_eq!(filled(&other).len(), 32);
        }
        let nobody = Caller {
            owner_id: None,
            ..caller()
        };
        assert_eq!(text("{owner_hash}").filled(&nobody), None);
    }

    #[test]
    fn wrong_texts_are_refused() {
        for wrong in ["{", "}", "a}{", "{owner}", "{metadata.}", "{tenant_id"] {
            assert!(CallerText::parse(wrong).is_err(), "{wrong}");
        }
        let long = Caller {
            agent: "ä".repeat(600),
            ..caller()
        };
        let filled = text("{agent}").filled(&long).unwrap();
        assert_eq!(filled.chars().count(), MAX_CHARS);
    }

    fn body(kind: ProviderKind, given: Value) -> Value {
        let mut body = given;
        fields().add_to(&mut body, kind, &caller());
        body
    }

    #[test]
    fn a_body_has_the_facts_and_leaves_out_what_is_missing() {
        let owner = ids::caller_hash(&["owner", "acme", "ann"]);
        let metadata = json!({"tenant": "acme", "tags": ["plan:göld\n"]});
        let expected = json!({"user": owner, "metadata": metadata});
        assert_eq!(body(ProviderKind::OpenAi, json!({})), expected);
        let expected = json!({"metadata": {"user_id": owner}});
        assert_eq!(body(ProviderKind::Anthropic, json!({})), expected);
        assert_eq!(body(ProviderKind::Gemini, json!({})), json!({}));
    }

    #[test]
    fn extra_fields_of_the_agent_win() {
        let given = json!({"user": "me", "metadata": {"tenant": "x"}});
        let body = body(ProviderKind::OpenAiResponses, given);
        assert_eq!(body["user"], "me");
        assert_eq!(body["metadata"]["tenant"], "x");
        assert_eq!(body["metadata"]["tags"], json!(["plan:göld\n"]));
    }
}
