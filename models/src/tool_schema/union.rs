//! Schemas of which one holds.

use serde_json::{Map, Value, json};

use super::keywords::{self, Kind};
use crate::profile::ToolSchemas;

/// Takes the branches of a schema out of its fields; `None` without branches.
pub(super) fn branches(fields: &mut Map<String, Value>) -> Option<Vec<Value>> {
    let lists = ["anyOf", "oneOf"].map(|keyword| fields.remove(keyword));
    let mut lists = lists.into_iter().flatten().filter_map(|list| match list {
        Value::Array(branches) if !branches.is_empty() => Some(branches),
        _ => None,
    });
    // Without the second list, the schema allows more.
    lists.next()
}

/// True for a branch that allows no value, as zod writes it for an optional property: `{"not": {}}`.
pub(super) fn is_never(branch: &Map<String, Value>) -> bool {
    branch.len() == 1
        && branch
            .get("not")
            .is_some_and(|not| *not == json!({}) || *not == json!(true))
}

/// Splits the fields around a union into the annotations of the union, and the fields for the branches.
pub(super) fn split(
    around: Map<String, Value>,
    form: ToolSchemas,
) -> (Map<String, Value>, Map<String, Value>) {
    let annotations = keywords::annotations(&around, form);
    let shared = around
        .into_iter()
        .filter(|(name, _)| !keywords::is_annotation(name));
    (annotations, shared.collect())
}

/// True unless the type of a branch contradicts the type around the union.
pub(super) fn is_possible(branch: &Map<String, Value>, shared: &Map<String, Value>) -> bool {
    let (of_branch, around) = (keywords::named(branch), keywords::named(shared));
    of_branch.is_empty() || around.is_empty() || of_branch.iter().any(|kind| around.contains(kind))
}

/// Returns the branches of a union within a union.
pub(super) fn lifted(branch: Value) -> Vec<Value> {
    match branch {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("anyOf") => {
            match fields.remove("anyOf") {
                Some(Value::Array(branches)) => branches,
                _ => Vec::new(),
            }
        }
        branch => vec![branch],
    }
}

/// Joins the branches that are only choices of texts.
pub(super) fn join_choices(branches: &mut Vec<Value>) {
    let is_choice = |branch: &Value| {
        let fields = branch.as_object();
        fields.is_some_and(|fields| {
            fields.len() == 2
                && fields.get("type") == Some(&json!(Kind::String.as_str()))
                && fields.contains_key("enum")
        })
    };
    let Some(first) = branches.iter().position(is_choice) else {
        return;
    };
    let mut choices: Vec<Value> = Vec::new();
    for branch in branches.iter().filter(|branch| is_choice(branch)) {
        for choice in branch["enum"].as_array().into_iter().flatten() {
            if !choices.contains(choice) {
                choices.push(choice.clone());
            }
        }
    }
    let mut position = 0;
    branches.retain(|branch| {
        position += 1;
        position - 1 == first || !is_choice(branch)
    });
    branches[first]["enum"] = Value::Array(choices);
}
