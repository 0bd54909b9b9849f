//! Texts and values of a model, in a form that every database stores.

use everturn_proto::Json;

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

/// Returns the arguments in a form that the store accepts and every reader can parse. Arguments with very long numbers
/// or too many levels become a string: no tool takes a string, and the model gets an error.
pub(crate) fn storable(arguments: Json) -> Json {
    let arguments = arguments.made_storable().unwrap_or(arguments);
    if is_long_written_out(&arguments) || arguments.is_too_deep() {
        return Json::of(&arguments.as_str());
    }
    arguments
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
    use everturn_proto::limits::MAX_JSON_LEVELS;

    use super::*;

    #[test]
    fn arguments_that_would_be_long_written_out_become_a_string() {
        let kept = format!(r#"{{"p":[{}1]}}"#, "1e-300,".repeat(100));
        assert_eq!(storable(Json::parse(kept.as_str()).unwrap()).as_str(), kept);
        let too_long = format!(r#"{{"p":[{}1]}}"#, "1e-300,".repeat(1000));
        let shown = storable(Json::parse(too_long.as_str()).unwrap());
        assert_eq!(shown.decode::<String>().unwrap(), too_long);
        let digits = storable(Json::parse(r#"{"n":1e131071}"#).unwrap());
        assert_eq!(digits.as_str(), r#"{"n":"1e131071"}"#);
    }

    /// The arguments of a remote tool travel through the workflow. If its worker could not read them, the turn would stand
    /// still.
    #[test]
    fn arguments_that_are_too_deep_become_a_string() {
        let nested = |levels: usize| {
            format!(
                r#"{{"a":{}{}}}"#,
                "[".repeat(levels - 1),
                "]".repeat(levels - 1)
            )
        };
        let kept = nested(MAX_JSON_LEVELS);
        assert_eq!(storable(Json::parse(kept.as_str()).unwrap()).as_str(), kept);
        let too_deep = nested(MAX_JSON_LEVELS + 1);
        let shown = storable(Json::parse(too_deep.as_str()).unwrap());
        assert_eq!(shown.decode::<String>().unwrap(), too_deep);
    }
}
