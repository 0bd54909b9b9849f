//! The argument of a remote tool's activity, with the headers that travel beside it.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::turn::RemoteToolInput;

/// The argument of a remote tool's activity. Only the input is on the wire; the worker sends the headers as headers of the
/// activity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteCall {
    /// The input of the activity.
    pub input: RemoteToolInput,
    /// Headers by name, like the context of a trace.
    pub headers: HashMap<String, String>,
}

impl Serialize for RemoteCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.input.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RemoteCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            input: RemoteToolInput::deserialize(deserializer)?,
            headers: HashMap::new(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_not_in_the_argument() {
        let call = RemoteCall {
            input: RemoteToolInput {
                tool_name: "transfer".into(),
                depth: 1,
                ..RemoteToolInput::default()
            },
            headers: [("traceparent".into(), "00-1".into())].into(),
        };
        let text = serde_json::to_string(&call).unwrap();
        assert_eq!(text, serde_json::to_string(&call.input).unwrap());
        let read: RemoteCall = serde_json::from_str(&text).unwrap();
        assert_eq!(read.input, call.input);
    }
}
