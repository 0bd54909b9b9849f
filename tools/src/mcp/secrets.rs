//! Secrets in files, perhaps one file per tenant: `/run/secrets/{tenant}/token`.

use std::path::PathBuf;

use everturn_proto::ids;

/// The placeholder for the tenant in a path.
const PLACEHOLDER: &str = "{tenant}";
/// The most bytes of a secret: more than servers accept in a header.
const MAX_BYTES: usize = 16 * 1024;

/// A file with a secret. The file is read for every new connection, so a new secret needs no restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFile(String);

impl SecretFile {
    /// Creates the reference to a file at this path, in which `{tenant}` stands for the tenant.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Returns true when every tenant has a separate file.
    pub fn is_per_tenant(&self) -> bool {
        self.0.contains(PLACEHOLDER)
    }

    /// Returns the path for a tenant. Refuses a tenant whose name could lead to a different folder.
    fn path(&self, tenant_id: Option<&str>) -> Result<PathBuf, String> {
        if !self.is_per_tenant() {
            return Ok(PathBuf::from(&self.0));
        }
        let tenant_id = tenant_id
            .ok_or("the secret belongs to a tenant, but the connection is for every tenant")?;
        let is_step = tenant_id.bytes().all(|byte| byte == b'.');
        if is_step || !ids::is_valid(tenant_id) {
            return Err("the name of the tenant cannot be a part of a path".to_owned());
        }
        Ok(PathBuf::from(self.0.replace(PLACEHOLDER, tenant_id)))
    }

    /// Reads the secret, and trims white space. The error does not show the secret.
    pub(super) async fn read(&self, tenant_id: Option<&str>) -> Result<String, String> {
        let named = |reason: String| format!("the secret in {} cannot be read: {reason}", self.0);
        let path = self.path(tenant_id).map_err(named)?;
        let read = tokio::fs::read(&path).await;
        let bytes = read.map_err(|error| named(error.to_string()))?;
        if bytes.len() > MAX_BYTES {
            return Err(named(format!("the file has more than {MAX_BYTES} bytes")));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| named("the file is not a text".to_owned()))?;
        match text.trim() {
            "" => Err(named("it is empty".to_owned())),
            secret => Ok(secret.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_tenant_has_its_own_secret() {
        let directory = tempfile::tempdir().unwrap();
        for tenant in ["acme", "globex"] {
            std::fs::create_dir(directory.path().join(tenant)).unwrap();
            let file = directory.path().join(tenant).join("token");
            std::fs::write(file, format!("token of {tenant}\n")).unwrap();
        }
        std::fs::write(directory.path().join("token"), "of nobody").unwrap();
        let file = SecretFile::new(format!("{}/{{tenant}}/token", directory.path().display()));
        assert_eq!(file.read(Some("acme")).await.unwrap(), "token of acme");
        assert_eq!(file.read(Some("globex")).await.unwrap(), "token of globex");
        for hostile in [
            "",
            ".",
            "..",
            "acme/../globex",
            "acme/",
            "a\0",
            "../acme",
            "…",
        ] {
            let error = file.read(Some(hostile)).await.unwrap_err();
            assert!(error.contains("part of a path"), "{hostile}: {error}");
        }
        assert!(file.read(None).await.is_err());
        let error = file.read(Some("other")).await.unwrap_err();
        assert!(error.contains("{tenant}"), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_secret_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = SecretFile::new(path.display().to_string());
        for (bytes, expected) in [
            (b" \n".to_vec(), "empty"),
            (vec![0xff], "not a text"),
            (vec![b'x'; MAX_BYTES + 1], "more than"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = file.read(None).await.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
