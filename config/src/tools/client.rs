//! `[client_tools.NAME]`: tools that run at the client. The client posts the results.

use std::collections::BTreeMap;

use everturn_tools::{DescribedTool, RunBy};
use serde::Deserialize;
use toml::Spanned;

use super::description::{WrittenEffect, WrittenTitle, checked_spec};
use crate::{
    checker::Checker,
    forms::{Text, Written},
    names::{Names, Runner},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientToolTable {
    description: Written<Text>,
    title: Option<WrittenTitle>,
    #[serde(default)]
    input: toml::Table,
    effect: Option<WrittenEffect>,
}

pub(crate) fn check(
    tables: &BTreeMap<Spanned<String>, ClientToolTable>,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<DescribedTool> {
    let mut tools = Vec::new();
    for (name, table) in tables {
        if names.add_tool(check, name, Runner::Client) {
            let spec = checked_spec(
                check,
                name,
                &table.description,
                &table.input,
                table.title.as_ref(),
                table.effect.as_ref(),
            );
            let run_by = RunBy::Client;
            tools.push(DescribedTool { spec, run_by });
        }
    }
    tools
}
