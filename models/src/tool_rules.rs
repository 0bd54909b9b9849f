//! The rules of a provider for the tools of a request.

use crate::profile::{Profile, PropertyNames, ToolNames, ToolSchemas};

/// The longest name of a tool that every provider takes.
const MAX_NAME_CHARS: usize = 64;
/// The shortest name of a tool. Moonshot refuses a shorter name.
const MIN_NAME_CHARS: usize = 3;

/// The rules of a provider for the tools of a request, from the provider's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolRules {
    /// The schemas that the provider takes.
    pub schemas: ToolSchemas,
    /// The names of properties that the provider takes.
    pub property_names: PropertyNames,
    /// The names of tools that the provider takes.
    pub tool_names: ToolNames,
    /// The most tools of a request.
    pub max_tools: usize,
}

impl ToolRules {
    /// Returns the rules of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self {
            schemas: profile.tool_schemas,
            property_names: profile.property_names,
            tool_names: profile.tool_names,
            max_tools: usize::try_from(profile.max_tools).unwrap_or(usize::MAX),
        }
    }

    /// Returns the name of a tool as the provider gets it.
    pub(crate) fn tool_name(self, name: &str) -> String {
        let begins_well =
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        match self.tool_names {
            ToolNames::Words => name.to_owned(),
            ToolNames::LetterFirst if begins_well && name.len() >= MIN_NAME_CHARS => {
                name.to_owned()
            }
            ToolNames::LetterFirst => {
                let name: String = name.chars().take(MAX_NAME_CHARS - 1).collect();
                format!("{:_>width$}", format!("_{name}"), width = MIN_NAME_CHARS)
            }
        }
    }
}
