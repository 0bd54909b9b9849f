//! Valid names of tools, and the names of a source's tools in an agent's list (a source is an MCP server).
//!
//! The model sees `source__tool`. An agent's list names one tool as `source__tool`, or all tools of a source as
//! `source__*`.

use everturn_proto::turn::AgentTool;
use sha2::{Digest, Sha256};

/// The longest tool name that providers accept.
pub(super) const MAX_NAME_BYTES: usize = 64;
/// The longest name of a source. Half of a tool's name remains for the tool.
const MAX_SOURCE_BYTES: usize = 30;
/// The separator between the name of a source and the name of a tool. No source and no local tool has the separator
/// in its name.
const SEPARATOR: &str = "__";
/// The wildcard for all tools of a source.
const ALL: &str = "*";
/// Characters of the hash in a shortened name: 32 bits, enough for the few tools of a server.
const HASH_CHARS: usize = 8;

/// Returns true for a name that every provider accepts.
pub fn is_valid(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_fit)
}

/// Returns true for a valid source name: at most 30 letters, digits, `-` and single `_`, with a letter or digit at
/// either end.
pub fn is_valid_source(name: &str) -> bool {
    let is_closed = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_framed = is_closed(name.chars().next()) && is_closed(name.chars().next_back());
    is_valid(name) && is_framed && name.len() <= MAX_SOURCE_BYTES && !name.contains(SEPARATOR)
}

/// Returns the source in the name of a tool or in a wildcard; `None` for a local tool.
pub fn source_of(name: &str) -> Option<&str> {
    name.split_once(SEPARATOR).map(|(source, _)| source)
}

/// Returns the source if `listed` is a wildcard for all tools of a source.
pub fn all_of(listed: &str) -> Option<&str> {
    listed.strip_suffix(ALL)?.strip_suffix(SEPARATOR)
}

/// Returns true when an agent that lists `listed` may use the tool `name`.
pub fn covers(listed: &str, name: &str) -> bool {
    listed == name || all_of(listed).is_some_and(|source| source_of(name) == Some(source))
}

/// Returns the settings of a tool in an agent's list. An entry with the tool's name takes precedence over a wildcard.
pub fn listed<'a>(tools: &'a [AgentTool], name: &str) -> Option<&'a AgentTool> {
    let by_name = tools.iter().find(|tool| tool.name == name);
    by_name.or_else(|| tools.iter().find(|tool| covers(&tool.name, name)))
}

/// Returns true for a valid entry of an agent's list: a tool or a wildcard.
pub fn is_listable(listed: &str) -> bool {
    all_of(listed).map_or_else(
        || is_valid(listed) && !listed.ends_with(SEPARATOR),
        is_valid_source,
    )
}

/// Returns the model's name for a tool of a source. A name that providers would refuse is changed and cut, and ends
/// in a hash of the whole name. The result is therefore stable, and two tools rarely collide; the caller refuses
/// collisions.
pub fn qualified(source: &str, tool: &str) -> String {
    let plain = format!("{source}{SEPARATOR}{tool}");
    if is_valid(&plain) {
        return plain;
    }
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(tool));
    let hash = u32::from_be_bytes([a, b, c, d]);
    let room =
        MAX_NAME_BYTES.saturating_sub(source.len() + SEPARATOR.len() + "_".len() + HASH_CHARS);
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let mended: String = tool.chars().take(room).map(fit).collect();
    format!("{source}{SEPARATOR}{mended}_{hash:08x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay() {
        assert_eq!(
            qualified("time", "get_current_time"),
            "time__get_current_time"
        );
        assert_eq!(qualified("time", "_x__y"), "time___x__y");
    }

    #[test]
    fn odd_names_are_mended_and_long_ones_cut() {
        assert_eq!(qualified("fs", "read.file"), "fs__read_file_dd32cdf5");
        assert_ne!(qualified("fs", "read.file"), qualified("fs", "read/file"));
        let long = qualified("fs", &"x".repeat(100));
        assert_eq!((long.len(), is_valid(&long)), (64, true));
    }

    #[test]
    fn an_agent_lists_one_or_all() {
        assert!(covers("fs__read", "fs__read") && !covers("fs__read", "fs__write"));
        assert!(
            covers("fs__*", "fs__read")
                && !covers("fs__*", "fsx__read")
                && !covers("fs__*", "read")
        );
        assert!(!covers("*", "read") && !covers("__*", "read"));
        assert!(is_listable("fs__read") && is_listable("fs__*"));
        assert!(
            !is_listable("__*")
                && !is_listable("fs__")
                && !is_listable("fs__a.b")
                && !is_listable("fs__r*")
        );
    }

    #[test]
    fn sources_have_plain_names() {
        for good in ["fs", "a-b_c", "x1", &"s".repeat(30)] {
            assert!(is_valid_source(good), "{good}");
        }
        for bad in ["", "a__b", "_a", "a_", "-a", "ä", "a.b", &"s".repeat(31)] {
            assert!(!is_valid_source(bad), "{bad}");
        }
    }

    proptest! {
        /// Whatever a server calls its tools, providers take the name, and it leads back to the server.
        #[test]
        fn every_name_fits(source in "[a-z0-9]([-_]?[a-z0-9]){0,14}", tool in ".{1,200}") {
            prop_assert!(is_valid_source(&source));
            let name = qualified(&source, &tool);
            prop_assert!(is_valid(&name));
            prop_assert_eq!(source_of(&name), Some(source.as_str()));
            let all = format!("{source}__*");
            prop_assert!(covers(&all, &name));
        }
    }
}
