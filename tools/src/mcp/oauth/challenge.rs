//! The challenge of a refused request: the header `WWW-Authenticate` (RFC 9110, 11.6.1) with the parameters of RFC
//! 6750 and RFC 9728.
//!
//! The parser is our own. The crate http-auth refuses the whole header for a `token68`, for an unquoted URL and for a
//! second space, and would lose the challenge of a lenient server.

/// The longest header that is read, in bytes.
const MAX_BYTES: usize = 8 * 1024;
/// The most scopes, and the most bytes of all scopes together.
const MAX_SCOPES: usize = 64;
const MAX_SCOPE_BYTES: usize = 2048;

/// The challenge of the scheme `Bearer`. Missing or unusable values are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::mcp) struct Challenge {
    /// The URL of the server's metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that a token needs.
    pub(super) scopes: Option<Vec<String>>,
    error: Option<String>,
}

impl Challenge {
    /// Parses the header. An unusable header gives an empty challenge.
    pub(in crate::mcp) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        if header.len() > MAX_BYTES {
            return challenge;
        }
        let mut is_bearer = false;
        let mut was_bearer = false;
        for item in items(header) {
            let (scheme, parameter) = split(item);
            if let Some(scheme) = scheme {
                // Only the first challenge of the scheme counts.
                is_bearer = scheme.eq_ignore_ascii_case("bearer") && !was_bearer;
                was_bearer |= is_bearer;
            }
            if let (true, Some((name, value))) = (is_bearer, parameter) {
                challenge.take(name, value);
            }
        }
        challenge
    }

    fn take(&mut self, name: &str, value: String) {
        let (field, value) = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => (&mut self.resource_metadata, value),
            "error" => (&mut self.error, value),
            "scope" => {
                self.scopes = self.scopes.take().or_else(|| scopes(&value));
                return;
            }
            _ => return,
        };
        field.get_or_insert(value);
    }

    /// Returns the scopes that the token lacks, if missing scopes are the reason for the refusal.
    pub(in crate::mcp) fn missing_scope(&self) -> Option<String> {
        let is_scope = self.error.as_deref() == Some("insufficient_scope");
        let wanted = self.scopes.as_ref().map(|scopes| scopes.join(" "));
        is_scope.then(|| wanted.unwrap_or_else(|| "it does not say what".to_owned()))
    }
}

/// Splits a text into scopes. Returns `None` for an invalid scope (RFC 6749, 3.3) or too many scopes.
pub(super) fn scopes(text: &str) -> Option<Vec<String>> {
    let scopes: Vec<_> = text.split(' ').filter(|scope| !scope.is_empty()).collect();
    let is_fit = text.len() <= MAX_SCOPE_BYTES
        && (1..=MAX_SCOPES).contains(&scopes.len())
        && scopes.iter().all(|scope| is_scope(scope));
    is_fit.then(|| scopes.into_iter().map(str::to_owned).collect())
}

/// Returns true for a valid scope of RFC 6749.
pub(super) fn is_scope(scope: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !scope.is_empty() && scope.bytes().all(is_fit)
}

/// Splits a header at the commas outside quotes.
fn items(header: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in header.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                items.push(header[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(header[start..].trim());
    items
}

/// Splits an item into the scheme, if the item begins a challenge, and the parameter.
fn split(item: &str) -> (Option<&str>, Option<(&str, String)>) {
    let end = item
        .find(|sign: char| sign.is_ascii_whitespace() || sign == '=')
        .unwrap_or(item.len());
    let (word, rest) = (&item[..end], item[end..].trim_start());
    if let Some(value) = rest.strip_prefix('=') {
        return (None, Some((word, unquoted(value.trim()))));
    }
    let parameter = rest.split_once('=');
    let parameter = parameter.map(|(name, value)| (name.trim_end(), unquoted(value.trim())));
    (Some(word), parameter)
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .map(|rest| rest.strip_suffix('"').unwrap_or(rest));
    let Some(inner) = inner else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        text.extend(if sign == '\\' {
            signs.next()
        } else {
            Some(sign)
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_parameters_of_bearer_are_read() {
        let header = "Basic realm=\"a, b\", charset=\"UTF-8\", bEARER error=\"invalid_token\", \
                      Resource_Metadata = \"https://h/a\\\"b,c\", scope=\"read write\"";
        let challenge = Challenge::parse(header);
        assert_eq!(
            challenge.resource_metadata.as_deref(),
            Some("https://h/a\"b,c")
        );
        assert_eq!(challenge.scopes, Some(vec!["read".into(), "write".into()]));
        assert_eq!(challenge.missing_scope(), None);
        let bare = Challenge::parse("Bearer resource_metadata=https://h/x?a=b");
        assert_eq!(bare.resource_metadata.as_deref(), Some("https://h/x?a=b"));
    }

    #[test]
    fn what_is_of_another_scheme_or_not_fit_does_not_count() {
        for header in [
            "",
            ",",
            "Bearer",
            "Basic resource_metadata=\"https://h\"",
            "DPoP scope=\"a\", Basic dGVzdA==",
            "Bearer scope=\"a\u{7f}\"",
            "Bearer realm=\"x\", Basic scope=\"a\"",
        ] {
            assert_eq!(Challenge::parse(header), Challenge::default(), "{header}");
        }
        let twice = "Bearer scope=\"first\", scope=\"second\", Bearer scope=\"third\"";
        assert_eq!(
            Challenge::parse(twice).scopes,
            Some(vec!["first".to_owned()])
        );
        let long = format!("Bearer scope=\"{}\"", "a ".repeat(MAX_BYTES));
        assert_eq!(Challenge::parse(&long), Challenge::default());
    }

    #[test]
    fn a_scope_that_is_missing_is_named() {
        let named = Challenge::parse("Bearer error=\"insufficient_scope\", scope=\"files:write\"");
        assert_eq!(named.missing_scope().as_deref(), Some("files:write"));
        let unnamed = Challenge::parse("Bearer error=insufficient_scope");
        assert!(unnamed.missing_scope().unwrap().contains("not say"));
    }

    proptest! {
        #[test]
        fn any_header_is_a_challenge_within_the_limits(header in "(?s).{0,400}", bearer in any::<bool>()) {
            let header = if bearer { format!("Bearer scope=\"{header}") } else { header };
            let challenge = Challenge::parse(&header);
            for scope in challenge.scopes.iter().flatten() {
                prop_assert!(is_scope(scope));
            }
        }

        /// What is written by the rules is read as it was meant.
        #[test]
        fn a_quoted_value_is_read_as_it_was_meant(value in "[ -~]{1,60}", realm in "[ -~]{0,20}") {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer realm=\"{}\", resource_metadata=\"{}\"", quoted(&realm), quoted(&value));
            prop_assert_eq!(Challenge::parse(&header).resource_metadata, Some(value));
        }
    }
}
