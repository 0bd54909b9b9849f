//! Texts and values of a model, in a form that every database stores, and the one text of a call's arguments.

use everturn_proto::{Json, limits::MAX_JSON_LEVELS};

/// The most bytes by which arguments may grow when the store writes their numbers out: more than people or models ever
/// write, and less than a reader would notice.
const MAX_WRITTEN_OUT_BYTES: usize = 64 * 1024;

/// Replaces NUL characters: PostgreSQL cannot store them in a text.
pub(crate) fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text
    }
}

/// The arguments of a call, as the store keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// The canonical text ([`Json::canonical`]).
    Usable(Json),
    /// The arguments as the model wrote them, as a string, because no tool may get them.
    Unusable {
        /// The text that the model wrote.
        written: Json,
        /// Why no tool may get the arguments. The sentence is for the model.
        reason: String,
    },
}

/// Returns the arguments in a form that the store accepts and that every reader understands alike. No tool gets arguments
/// with very long numbers, with too many levels, or with a repeated key.
pub(crate) fn arguments(written: Json) -> Arguments {
    let written = written.made_storable().unwrap_or(written);
    let reason = if is_long_written_out(&written) {
        "have numbers with too many digits. Write the numbers shorter, or as strings".to_owned()
    } else if written.is_too_deep() {
        format!("have more than {MAX_JSON_LEVELS} levels. Make the call again with fewer levels")
    } else if let Some(key) = written.repeated_key() {
        format!(
            "have the key `{key}` more than once in one object. Make the call again with each key once"
        )
    } else {
        return Arguments::Usable(written.into_canonical());
    };
    Arguments::Unusable {
        written: Json::of(&written.as_str()),
        reason: format!("The tool was not run, because the arguments {reason}."),
    }
}

/// Returns a value in a form that the store accepts; `None` when its written-out numbers would be too long.
pub(crate) fn storable_value(value: Json) -> Option<Json> {
    let value = value.made_storable().unwrap_or(value);
    (!is_long_written_out(&value)).then_some(value)
}

fn is_long_written_out(value: &Json) -> bool {
    value.stored_len() > value.as_str().len() + MAX_WRITTEN_OUT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_would_be_long_written_out_are_unusable() {
        let kept = format!(r#"{{"p":[{}1]}}"#, "1e-300,".repeat(100));
        assert_eq!(arguments(json(&kept)), Arguments::Usable(json(&kept)));
        let too_long = format!(r#"{{"p":[{}1]}}"#, "1e-300,".repeat(1000));
        assert!(refused(&too_long).contains("too many digits"));
        let digits = Arguments::Usable(json(r#"{"n":"1e131071"}"#));
        assert_eq!(arguments(json(r#"{"n":1e131071}"#)), digits);
    }

    /// The arguments of a remote tool travel through the workflow. If its worker could not read them, the turn would stand
    /// still.
    #[test]
    fn arguments_that_are_too_deep_are_unusable() {
        let nested = |levels: usize| {
            format!(
                r#"{{"a":{}{}}}"#,
                "[".repeat(levels - 1),
                "]".repeat(levels - 1)
            )
        };
        let kept = nested(MAX_JSON_LEVELS);
        assert_eq!(arguments(json(&kept)), Arguments::Usable(json(&kept)));
        assert!(refused(&nested(MAX_JSON_LEVELS + 1)).contains("100 levels"));
    }

    #[test]
    fn arguments_have_one_text_and_a_repeated_key_is_refused() {
        let written =
            r#"{ "to" : "\u0041da", "amount":12345678901234567890123.50 ,"id":9007199254740993}"#;
        let text = r#"{"amount":12345678901234567890123.50,"id":9007199254740993,"to":"Ada"}"#;
        assert_eq!(arguments(json(written)), Arguments::Usable(json(text)));
        for twice in [
            r#"{"amount":5000,"amount":1}"#,
            r#"{"amount":5000,"\u0061mount":1}"#,
            r#"{"pay":[{"amount":5000,"amount":1}]}"#,
            // Replaced characters may make two keys equal.
            r#"{"\ud800":1,"\ud801":2}"#,
        ] {
            assert!(refused(twice).contains("more than once"), "{twice}");
        }
        assert!(refused(r#"{"amount":5000,"amount":1}"#).contains("`amount`"));
    }

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    /// Returns the reason why no tool may get the arguments.
    fn refused(text: &str) -> String {
        match arguments(json(text)) {
            Arguments::Unusable { written, reason } => {
                assert!(written.decode::<String>().is_ok());
                reason
            }
            Arguments::Usable(_) => panic!("a tool may get {text}"),
        }
    }
}
