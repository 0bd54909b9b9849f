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
    use crate::caller::tests::{caller, fields};

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
