//! The page `docs/providers/profiles.md`, which is made from the table of profiles.

use std::{env, fs, path::Path};

use serde_json::Value;

use super::{super::table::ROWS, Profile, ProfileField};
use crate::kind::ProviderKind;

/// The variable with which the test writes the page.
const UPDATE: &str = "EVERTURN_UPDATE_PROFILES";
const PAGE: &str = "../docs/providers/profiles.md";

const FIELDS: [ProfileField; 12] = [
    ProfileField::CallIds,
    ProfileField::Roles,
    ProfileField::Thoughts,
    ProfileField::ThinkTags,
    ProfileField::StreamOptions,
    ProfileField::MaxTokens,
    ProfileField::Dialect,
    ProfileField::Cache,
    ProfileField::ToolSchemas,
    ProfileField::PropertyNames,
    ProfileField::ToolNames,
    ProfileField::MaxTools,
];

const HEAD: &str = "\
# The table of profiles

Providers of one kind differ: in the ids of tool calls, in the order of roles, in the thoughts that a model needs back.
Everturn keeps these differences in a table, and chooses a profile by the kind of the provider, the host of `base_url`, and the
name of the model. A test makes this page from the table in `models/src/profile/table.rs`.

Every field is a key of [`providers.NAME.profile`](../configuration.md#providersnameprofile), where an operator sets a value
for a provider. The section explains every value.

## The profile of an unknown provider

A provider without a row has the profile of its kind. A dash: the kind does not have the field.

";

const ROWS_HEAD: &str = "
## The rows

A row applies to a provider when kind, host and model fit. A host fits when the host of `base_url` is the name in the row, or
ends in a dot and the name. A model fits when its name contains one of the parts. When several rows set a field, the last row
wins.

";

/// Returns the page.
fn page() -> String {
    let heads = FIELDS.map(|field| code(field.as_str()));
    let mut page = HEAD.to_owned();
    page += &line(["kind".to_owned()].into_iter().chain(heads));
    page += &line((0..=FIELDS.len()).map(|_| "---".to_owned()));
    for kind in ProviderKind::ALL {
        page += &line([code(kind.as_str())].into_iter().chain(values(kind)));
    }
    page += ROWS_HEAD;
    let heads = ["kinds", "hosts", "models", "values"].map(str::to_owned);
    page += &line(heads);
    page += &line((0..4).map(|_| "---".to_owned()));
    for row in ROWS {
        let kinds: Vec<_> = row.kinds.iter().map(|kind| kind.as_str()).collect();
        let set = serde_json::to_value(row.set).unwrap();
        let set = set.as_object().unwrap().iter();
        let set = set.filter(|(_, value)| !value.is_null());
        let set = set.map(|(key, value)| {
            let field = FIELDS.iter().find(|field| field.as_str() == key).unwrap();
            let is_read = |kind| field.kinds().contains(kind);
            assert!(row.kinds.iter().all(is_read), "{kinds:?} have no {key}");
            code(&format!("{key} = {value}"))
        });
        let set: Vec<_> = set.collect();
        page += &line([
            list(&kinds),
            list(row.hosts),
            list(row.models),
            set.join(", "),
        ]);
    }
    page
}

/// The values of the profile of an unknown provider, in the order of the fields.
fn values(kind: ProviderKind) -> impl Iterator<Item = String> {
    let profile = serde_json::to_value(Profile::of_kind(kind)).unwrap();
    assert_eq!(profile.as_object().unwrap().len(), FIELDS.len());
    FIELDS.into_iter().map(move |field| {
        let value: &Value = &profile[field.as_str()];
        assert!(!value.is_null(), "{field:?}");
        if field.kinds().contains(&kind) {
            code(&value.to_string())
        } else {
            "–".to_owned()
        }
    })
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "any".to_owned();
    }
    let names: Vec<_> = names.iter().map(|name| code(name)).collect();
    names.join(", ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

#[test]
fn the_page_has_the_table_of_profiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/providers/profiles.md is out of date: run the test with {UPDATE}=1\n{page}"
    );
}
