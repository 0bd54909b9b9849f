//! Describes the caller to a tool, in the format of each kind of tool: `_meta` of MCP, headers of HTTP, variables of
//! a process.
//!
//! All values come from the store. Must not be here: values from a model's arguments.

use std::{borrow::Cow, io};

use crate::context::ToolContext;

/// The number of values about the caller and the call.
const COUNT: usize = 8;
/// The headers that a service gets also without a signature: the position of the call, without a word about the user.
const OF_CALL: [&str; 2] = ["everturn-tool-call-id", "everturn-depth"];

impl ToolContext {
    /// Returns names, variables and values about the caller and the call, in the order of a signature. `None` marks a
    /// value that the conversation lacks.
    fn told(&self) -> [(&'static str, &'static str, Option<Cow<'_, str>>); COUNT] {
        let text = |value| Some(Cow::Borrowed(value));
        [
            (
                "tenant_id",
                "EVERTURN_TENANT_ID",
                text(self.tenant_id.as_str()),
            ),
            (
                "owner_id",
                "EVERTURN_OWNER_ID",
                self.owner_id.as_deref().map(Cow::Borrowed),
            ),
            (
                "conversation_id",
                "EVERTURN_CONVERSATION_ID",
                text(self.conversation_id.as_str()),
            ),
            ("agent", "EVERTURN_AGENT", text(self.agent.as_str())),
            (
                "agent_execution_id",
                "EVERTURN_AGENT_EXECUTION_ID",
                text(self.agent_execution_id.as_str()),
            ),
            (
                "execution_id",
                "EVERTURN_EXECUTION_ID",
                text(self.execution_id.as_str()),
            ),
            (
                "tool_call_id",
                "EVERTURN_TOOL_CALL_ID",
                text(self.call_id.as_str()),
            ),
            (
                "depth",
                "EVERTURN_DEPTH",
                Some(Cow::Owned(self.depth.to_string())),
            ),
        ]
    }

    /// Returns the keys of `_meta` in MCP, with the prefix that the protocol requires.
    pub(super) fn meta(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.told()
            .into_iter()
            .filter_map(|(name, _, value)| Some((format!("everturn/{name}"), value?.into_owned())))
    }

    /// Returns the headers of a request, in lower case and in the order of a signature. Values are percent-encoded,
    /// therefore a value cannot end its header or contain a character that headers forbid.
    pub(super) fn headers(&self) -> Vec<(String, Option<String>)> {
        let told = self.told().into_iter();
        told.map(|(name, _, value)| {
            let name = format!("everturn-{}", name.replace('_', "-"));
            (name, value.map(|value| super::http::encode(&value)))
        })
        .collect()
    }

    /// Returns the headers of a request without a signature: the tool-call id and the depth, which name no user.
    pub(super) fn headers_of_call(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.headers().into_iter();
        all.filter_map(|(name, value)| Some((name, value?)))
            .filter(|(name, _)| OF_CALL.contains(&name.as_str()))
    }

    /// Returns the variables of a process. A value with a NUL is an error: a variable cannot hold a NUL, and a cut
    /// value could name a different caller.
    pub(super) fn variables(&self) -> io::Result<Vec<(String, String)>> {
        let told = self.told().into_iter();
        told.filter_map(|(_, name, value)| Some((name, value?)))
            .map(|(name, value)| {
                if value.contains('\0') {
                    let message =
                        format!("{name} cannot be given to a program: the text has a NUL");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                }
                Ok((name.to_owned(), value.into_owned()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn each_kind_of_tool_has_its_words() {
        let context = ToolContext {
            tenant_id: "acme".into(),
            owner_id: Some("ann\r\nx: ü".into()),
            agent: "default".into(),
            call_id: "call_1".into(),
            depth: 2,
            ..context()
        };
        let meta: Vec<_> = context.meta().collect();
        assert_eq!(meta[0], ("everturn/tenant_id".into(), "acme".into()));
        assert_eq!(meta[1].1, "ann\r\nx: ü");
        let headers = context.headers();
        assert_eq!(
            headers[0],
            ("everturn-tenant-id".into(), Some("acme".into()))
        );
        assert_eq!(headers[1].1.as_deref(), Some("ann%0D%0Ax%3A%20%C3%BC"));
        assert_eq!(headers[5].0, "everturn-execution-id");
        assert_eq!(
            headers[6],
            ("everturn-tool-call-id".into(), Some("call_1".into()))
        );
        assert_eq!(headers[7], ("everturn-depth".into(), Some("2".into())));
        let of_call: Vec<_> = context.headers_of_call().map(|(name, _)| name).collect();
        assert_eq!(of_call, OF_CALL);
        assert_eq!(meta[7], ("everturn/depth".into(), "2".into()));
        let variables = context.variables().unwrap();
        assert_eq!(variables[3], ("EVERTURN_AGENT".into(), "default".into()));
        assert_eq!(variables[7], ("EVERTURN_DEPTH".into(), "2".into()));
        assert_eq!(variables.len(), COUNT);
    }

    #[test]
    fn what_there_is_not_is_left_out() {
        let context = ToolContext {
            owner_id: None,
            ..context()
        };
        assert!(context.meta().all(|(name, _)| name != "everturn/owner_id"));
        assert_eq!(context.headers()[1], ("everturn-owner-id".into(), None));
        assert_eq!(context.variables().unwrap().len(), COUNT - 1);
    }

    #[test]
    fn a_variable_holds_no_nul() {
        let context = ToolContext {
            owner_id: Some("ann\0bob".into()),
            ..context()
        };
        let error = context.variables().unwrap_err();
        assert!(error.to_string().contains("EVERTURN_OWNER_ID"), "{error}");
    }
}
