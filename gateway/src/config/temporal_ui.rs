//! The address of a workflow's page in the Temporal UI.

/// The placeholder of the workflow's id in the address.
const WORKFLOW_ID: &str = "{workflow_id}";

/// The address of a workflow's page in the Temporal UI, with the placeholder `{workflow_id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemporalUi(String);

/// The error for a text that is not the address of a workflow's page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the address of a workflow is an http or https URL without a user, with `{{workflow_id}}` where the workflow's id \
     goes, like http://localhost:8233/namespaces/default/workflows/{{workflow_id}}"
)]
pub struct NoTemporalUi;

impl TemporalUi {
    /// Reads an address. An address with a user or a password is refused, because every caller may read the address.
    pub fn parse(text: &str) -> Result<Self, NoTemporalUi> {
        let url = reqwest::Url::parse(text).map_err(|_| NoTemporalUi)?;
        let is_http = matches!(url.scheme(), "http" | "https");
        let has_user = !url.username().is_empty() || url.password().is_some();
        // A placeholder in the host would let the workflow's id choose the server.
        let is_behind_host =
            !url.authority().contains(['{', '}']) && text.matches(WORKFLOW_ID).count() == 1;
        if !is_http || has_user || !is_behind_host {
            return Err(NoTemporalUi);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the address of the workflow's page.
    pub(crate) fn page_of(&self, workflow_id: &str) -> String {
        let encode = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        };
        let encoded: String = workflow_id.bytes().map(encode).collect();
        self.0.replace(WORKFLOW_ID, &encoded)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_id_stands_where_the_address_says() {
        let ui = TemporalUi::parse("https://t.example.com/namespaces/a/workflows/{workflow_id}")
            .unwrap();
        assert_eq!(
            ui.page_of("conversation-a:b/exec_1"),
            "https://t.example.com/namespaces/a/workflows/conversation-a%3Ab%2Fexec_1"
        );
        let search =
            TemporalUi::parse("http://localhost:8233/?query=WorkflowId%3D%22{workflow_id}%22")
                .unwrap();
        assert_eq!(
            search.page_of("c"),
            "http://localhost:8233/?query=WorkflowId%3D%22c%22"
        );
    }

    #[test]
    fn what_is_no_address_of_a_workflow_is_refused() {
        for bad in [
            "",
            "http://localhost:8233",
            "/workflows/{workflow_id}",
            "javascript:alert({workflow_id})",
            "ftp://a.com/{workflow_id}",
            "https://user:secret@a.com/{workflow_id}",
            "https://{workflow_id}.a.com/",
            "https://a.com/{workflow_id}/{workflow_id}",
        ] {
            assert_eq!(TemporalUi::parse(bad), Err(NoTemporalUi), "{bad}");
        }
    }
}
