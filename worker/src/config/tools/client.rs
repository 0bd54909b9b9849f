//! `[client_tools.NAME]`: tools that run at the client, which posts their results.

use std::collections::BTreeMap;

use everturn_activities::tools::{ClientTool, ToolSpec};
use everturn_proto::Json;
use serde::Deserialize;
use toml::Spanned;

use super::description::{WrittenEffect, checked_description, checked_schema};
use crate::config::{
    checker::Checker,
    names::{Names, Runner},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ClientToolTable {
    description: Spanned<String>,
    #[serde(default)]
    input: toml::Table,
    effect: Option<WrittenEffect>,
}

pub(in crate::config) fn check(
    tables: &BTreeMap<Spanned<String>, ClientToolTable>,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<ClientTool> {
    let mut tools = Vec::new();
    for (name, table) in tables {
        if names.add_tool(check, name, Runner::Client) {
            tools.push(table.check(name, check));
        }
    }
    tools
}

impl ClientToolTable {
    fn check(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> ClientTool {
        ClientTool(ToolSpec {
            name: name.get_ref().clone(),
            description: checked_description(check, &self.description),
            parameters: checked_schema(check, name, Json::of(&self.input).to_value()),
            effect: self.effect.unwrap_or(WrittenEffect::Once).into(),
        })
    }
}
