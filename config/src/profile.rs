//! `[providers.NAME.profile]`: what a provider takes and sends, where the table of profiles does not fit the provider.

use everturn_models::{
    Cache, CallIds, Dialect, MaxTokens, ProfileField, ProfileSettings, PropertyNames, ProviderKind,
    Roles, Thoughts, ToolNames, ToolSchemas,
};
use serde::Deserialize;

use super::{
    checker::Checker,
    forms::{Flag, Form, Number, Word, Written},
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProfileTable {
    call_ids: Option<Written<Word<CallIds>>>,
    roles: Option<Written<Word<Roles>>>,
    thoughts: Option<Written<Word<Thoughts>>>,
    think_tags: Option<Written<Flag>>,
    stream_options: Option<Written<Flag>>,
    max_tokens: Option<Written<Word<MaxTokens>>>,
    dialect: Option<Written<Word<Dialect>>>,
    cache: Option<Written<Word<Cache>>>,
    tool_schemas: Option<Written<Word<ToolSchemas>>>,
    property_names: Option<Written<Word<PropertyNames>>>,
    tool_names: Option<Written<Word<ToolNames>>>,
    max_tools: Option<Written<Number<8, 4096>>>,
}

impl ProfileTable {
    /// Returns the settings of a provider of this kind.
    pub(super) fn check(&self, kind: ProviderKind, check: &mut Checker<'_>) -> ProfileSettings {
        use ProfileField as Field;
        self.check_cache(kind, check);
        let mut fields = Fields { kind, check };
        ProfileSettings {
            call_ids: fields.value(Field::CallIds, self.call_ids.as_ref()),
            roles: fields.value(Field::Roles, self.roles.as_ref()),
            thoughts: fields.value(Field::Thoughts, self.thoughts.as_ref()),
            think_tags: fields.value(Field::ThinkTags, self.think_tags.as_ref()),
            stream_options: fields.value(Field::StreamOptions, self.stream_options.as_ref()),
            max_tokens: fields.value(Field::MaxTokens, self.max_tokens.as_ref()),
            dialect: fields.value(Field::Dialect, self.dialect.as_ref()),
            cache: fields.value(Field::Cache, self.cache.as_ref()),
            tool_schemas: fields.value(Field::ToolSchemas, self.tool_schemas.as_ref()),
            property_names: fields.value(Field::PropertyNames, self.property_names.as_ref()),
            tool_names: fields.value(Field::ToolNames, self.tool_names.as_ref()),
            max_tools: fields.value(Field::MaxTools, self.max_tools.as_ref()),
        }
    }
}

impl ProfileTable {
    /// Notes a way to cache that another kind of providers has.
    fn check_cache(&self, kind: ProviderKind, check: &mut Checker<'_>) {
        let Some(written) = &self.cache else {
            return;
        };
        let is_anthropic = kind == ProviderKind::Anthropic;
        let other = match written.value {
            Ok(Cache::Marks) if !is_anthropic => "marks",
            Ok(Cache::Key) if is_anthropic => "key",
            Ok(Cache::Own | Cache::Marks | Cache::Key) | Err(_) => return,
        };
        check.wrong(
            &written.at,
            format!(
                "a provider of kind `{}` has no cache with \"{other}\"",
                kind.as_str()
            ),
        );
    }
}

/// Reads the fields of one table.
struct Fields<'c, 's> {
    kind: ProviderKind,
    check: &'c mut Checker<'s>,
}

impl Fields<'_, '_> {
    /// Returns the value of a field. Notes a mistake, and a field that means nothing for the provider's kind.
    fn value<F: Form>(
        &mut self,
        field: ProfileField,
        written: Option<&Written<F>>,
    ) -> Option<F::Value> {
        let written = written?;
        let kinds = field.kinds();
        if !kinds.contains(&self.kind) {
            let kinds: Vec<_> = kinds
                .iter()
                .map(|kind| format!("`{}`", kind.as_str()))
                .collect();
            self.check.wrong(
                &written.at,
                format!(
                    "`{}` of a profile means nothing for a provider of kind `{}`, only for kind {}; remove the key",
                    field.as_str(),
                    self.kind.as_str(),
                    kinds.join(" or ")
                ),
            );
        }
        self.check.value(written)
    }
}
