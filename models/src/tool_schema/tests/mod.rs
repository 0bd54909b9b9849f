//! Tests of the adapted schemas, and of the way back.

mod calls;
mod matrix;
mod names;
mod schemas;

use serde_json::Value;

use super::adapted::{Adapted, Unfit, adapt};
use crate::{
    kind::ProviderKind,
    profile::{Profile, ProfileSettings},
    refused::SchemaReader,
    tool_rules::ToolRules,
};

/// Returns the rules of the provider that a validator stands for.
fn rules(reader: SchemaReader) -> ToolRules {
    let (kind, host, model) = match reader {
        SchemaReader::OpenAi => (ProviderKind::OpenAi, "api.openai.com", "gpt-5"),
        SchemaReader::Anthropic => (
            ProviderKind::Anthropic,
            "api.anthropic.com",
            "claude-sonnet-4-5",
        ),
        SchemaReader::Gemini => (
            ProviderKind::Gemini,
            "generativelanguage.googleapis.com",
            "gemini-3-pro",
        ),
        SchemaReader::Moonshot => (ProviderKind::OpenAi, "api.moonshot.ai", "kimi-k2.6"),
        SchemaReader::Mistral => (ProviderKind::OpenAi, "api.mistral.ai", "mistral-large"),
    };
    ToolRules::of(&Profile::of(kind, host, model, ProfileSettings::default()))
}

fn adapted(reader: SchemaReader, schema: &Value) -> Result<Adapted, Unfit> {
    adapt(schema, rules(reader))
}
