//! Turns a server's list into tools for agents. Unusable tools are left out and logged.

use std::sync::Arc;

use everturn_proto::{TitleTemplate, words::Effect};
use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde_json::{Value, json};

use super::{
    link::Link,
    options::{ALL_TOOLS, ServerOptions},
    tool::McpTool,
};
use crate::{checked::CheckedTool, names, registry::ToolSet, tool::ToolSpec};

/// The most characters of a description, because the model gets the description, at a cost, with every call.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// The most bytes of a schema, which the model also gets. A larger schema cannot be cut, so the tool is left out.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Returns the tools of a server, by the names that models see.
pub(super) fn tools(link: &Arc<Link>, listed: Vec<Listed>) -> ToolSet {
    let options = &link.options;
    warn_of_unknown(options, &listed);
    let is_wanted = |tool: &Listed| {
        options
            .only
            .as_ref()
            .is_none_or(|only| only.iter().any(|name| *name == tool.name))
    };
    let wanted: Vec<Listed> = listed.into_iter().filter(is_wanted).collect();
    if wanted.len() > options.max_tools {
        tracing::warn!(
            server = options.name,
            max_tools = options.max_tools,
            "an MCP server has more tools than the limit; name the needed tools in `tools`, or raise `max_tools`"
        );
    }
    let mut tools = ToolSet::new();
    for tool in wanted.into_iter().take(options.max_tools) {
        let name = tool.name.to_string();
        match checked(link, tool) {
            Ok(tool) if tools.contains_key(&tool.spec().name) => {
                tracing::warn!(
                    server = options.name,
                    tool = name,
                    "left out: another tool has this name for the model"
                );
            }
            Ok(tool) => {
                tools.insert(tool.spec().name.clone(), tool);
            }
            Err(reason) => tracing::warn!(
                server = options.name,
                tool = name,
                reason,
                "an MCP tool is left out"
            ),
        }
    }
    tools
}

fn checked(link: &Arc<Link>, listed: Listed) -> Result<CheckedTool, String> {
    if listed.name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let parameters = schema(&listed);
    let bytes = parameters.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "the schema has {bytes} bytes; the limit is {MAX_SCHEMA_BYTES}"
        ));
    }
    let description = listed
        .description
        .as_deref()
        .or(listed.title.as_deref())
        .unwrap_or_default();
    let spec = ToolSpec {
        name: names::qualified(&link.options.name, &listed.name),
        description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
        parameters,
        title: title(&link.options, &listed),
        effect: effect(&link.options, &listed.name, listed.annotations.as_ref()),
        is_inline: false,
    };
    let tool = McpTool::new(Arc::clone(link), listed.name.into_owned(), spec);
    CheckedTool::new(Arc::new(tool)).map_err(|error| error.to_string())
}

/// Returns the schema, with fields added that providers require for a tool without arguments.
fn schema(listed: &Listed) -> Value {
    let mut schema = listed.input_schema.as_ref().clone();
    schema.entry("type").or_insert(json!("object"));
    schema.entry("properties").or_insert(json!({}));
    Value::Object(schema)
}

/// Returns the operator's template, or else the server's title. A title of the server has no placeholders.
fn title(options: &ServerOptions, listed: &Listed) -> Option<String> {
    if let Some(title) = options.titles.get(&*listed.name) {
        return Some(title.clone());
    }
    let hints = listed.annotations.as_ref();
    let hint = hints.and_then(|hints| hints.title.as_deref());
    let title = listed.title.as_deref().or(hint)?;
    TitleTemplate::literal(title)
}

/// Returns the operator's effect, or the effect from the server's hints, or else the strictest effect. Contradicting
/// hints (read-only and destructive) mean `once`.
fn effect(options: &ServerOptions, tool: &str, hints: Option<&ToolAnnotations>) -> Effect {
    if let Some(effect) = options
        .effects
        .get(tool)
        .or_else(|| options.effects.get(ALL_TOOLS))
    {
        return effect.clone();
    }
    let Some(hints) = hints else {
        return Effect::Once;
    };
    match (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
    ) {
        (Some(true), Some(true), _) => Effect::Once,
        (Some(true), _, _) => Effect::Read,
        (_, _, Some(true)) => Effect::Idempotent,
        _ => Effect::Once,
    }
}

/// Warns of names in the configuration that the server does not know, because they are most likely mistyped.
fn warn_of_unknown(options: &ServerOptions, listed: &[Listed]) {
    let named = options
        .effects
        .keys()
        .chain(options.titles.keys())
        .chain(options.only.iter().flatten())
        .filter(|name| *name != ALL_TOOLS);
    for name in named.filter(|name| !listed.iter().any(|tool| tool.name == **name)) {
        tracing::warn!(
            server = options.name,
            tool = name,
            "the configuration names a tool that the server does not have"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::options::ServerLocation;

    fn options() -> ServerOptions {
        ServerOptions::new(
            "fs",
            ServerLocation::Url {
                url: "http://localhost/".into(),
                headers: Vec::new(),
                header_files: Vec::new(),
                oauth: None,
            },
        )
    }

    fn listed(name: &str, annotations: &Value) -> Listed {
        let tool = json!({"name": name, "description": "Does it.", "inputSchema": {}, "annotations": annotations});
        serde_json::from_value(tool).unwrap()
    }

    fn catalog(options: ServerOptions, listed: Vec<Listed>) -> ToolSet {
        tools(&Link::new(options, None, tools), listed)
    }

    fn effect_of(options: ServerOptions, annotations: &Value) -> Effect {
        catalog(options, vec![listed("write", annotations)])["fs__write"]
            .spec()
            .effect
            .clone()
    }

    #[tokio::test]
    async fn hints_never_make_a_tool_laxer_than_they_agree_on() {
        for (hints, expected) in [
            (json!(null), Effect::Once),
            (json!({}), Effect::Once),
            (json!({"readOnlyHint": true}), Effect::Read),
            (
                json!({"readOnlyHint": true, "destructiveHint": true}),
                Effect::Once,
            ),
            (json!({"idempotentHint": true}), Effect::Idempotent),
            (
                json!({"idempotentHint": true, "destructiveHint": true}),
                Effect::Idempotent,
            ),
            (json!({"destructiveHint": false}), Effect::Once),
            (
                json!({"readOnlyHint": false, "idempotentHint": false}),
                Effect::Once,
            ),
        ] {
            assert_eq!(effect_of(options(), &hints), expected, "{hints}");
        }
    }

    #[tokio::test]
    async fn the_operators_word_wins() {
        let read_only = json!({"readOnlyHint": true});
        let all = ServerOptions {
            effects: [(ALL_TOOLS.to_owned(), Effect::Once)].into(),
            ..options()
        };
        assert_eq!(effect_of(all.clone(), &read_only), Effect::Once);
        let mut one = all;
        one.effects.insert("write".to_owned(), Effect::Idempotent);
        assert_eq!(effect_of(one, &read_only), Effect::Idempotent);
    }

    #[tokio::test]
    async fn the_operators_title_precedes_the_servers() {
        let title = |options: ServerOptions, fields: Value| {
            let mut tool = json!({"name": "write", "inputSchema": {}});
            tool.as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            let listed = serde_json::from_value(tool).unwrap();
            catalog(options, vec![listed])["fs__write"]
                .spec()
                .title
                .clone()
        };
        let annotated = json!({"title": "Write {it}", "annotations": {"title": "Writes"}});
        assert_eq!(title(options(), json!({})), None);
        assert_eq!(title(options(), json!({"title": " "})), None);
        assert_eq!(
            title(options(), annotated.clone()).as_deref(),
            Some("Write {{it}}")
        );
        let hint = json!({"annotations": {"title": "Writes"}});
        assert_eq!(title(options(), hint).as_deref(), Some("Writes"));
        let own = ServerOptions {
            titles: [("write".to_owned(), "Write {path}".to_owned())].into(),
            ..options()
        };
        assert_eq!(title(own, annotated).as_deref(), Some("Write {path}"));
    }

    #[tokio::test]
    async fn what_cannot_be_offered_is_left_out() {
        let tool = |name: &str| listed(name, &json!(null));
        let mut remote = tool("remote");
        remote.input_schema = Arc::new(
            json!({"$ref": "https://example.com/x"})
                .as_object()
                .unwrap()
                .clone(),
        );
        let mut large = tool("large");
        large.input_schema = Arc::new(
            json!({"title": "x".repeat(MAX_SCHEMA_BYTES)})
                .as_object()
                .unwrap()
                .clone(),
        );
        // The last tool has the name into which `read.file` was mended.
        let tools = catalog(
            options(),
            vec![
                tool(""),
                remote,
                large,
                tool("read.file"),
                tool("read_file_dd32cdf5"),
            ],
        );
        assert_eq!(tools.keys().collect::<Vec<_>>(), ["fs__read_file_dd32cdf5"]);
        assert_eq!(
            tools["fs__read_file_dd32cdf5"].spec().parameters,
            json!({"type": "object", "properties": {}})
        );
    }

    #[tokio::test]
    async fn tools_are_filtered_and_bounded() {
        let many = || {
            (0..10)
                .map(|n| listed(&format!("t{n}"), &json!(null)))
                .collect::<Vec<_>>()
        };
        let few = ServerOptions {
            max_tools: 3,
            ..options()
        };
        assert_eq!(catalog(few, many()).len(), 3);
        let only = ServerOptions {
            only: Some(vec!["t7".into(), "gone".into()]),
            ..options()
        };
        assert_eq!(catalog(only, many()).keys().collect::<Vec<_>>(), ["fs__t7"]);
    }

    proptest! {
        /// Whatever a server lists, what is offered has a name that providers take, and a schema of an object.
        #[test]
        fn any_listing_is_offered_within_the_limits(
            names in prop::collection::vec("\\PC{0,12}|[a-z_.]{1,80}", 0..6), description in "\\PC{0,30}", repeats in 1_usize..400,
            schema in "\\{(\"(type|properties|required|\\$ref|enum|pattern|minimum)\":(\"(object|string|\\(|#/x)\"|\\[\\]|\\{\\}|-?[1-9]|null))?\\}",
        ) {
            let tool = |name: &String| {
                let tool = json!({"name": name, "description": description.repeat(repeats), "inputSchema": serde_json::from_str::<Value>(&schema).unwrap()});
                serde_json::from_value::<Listed>(tool).unwrap()
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let offered = runtime.block_on(async { catalog(options(), names.iter().map(tool).collect()) });
            prop_assert!(offered.len() <= names.len());
            for (name, tool) in offered {
                let spec = tool.spec();
                prop_assert!(crate::names::is_valid(&name) && name.starts_with("fs__"), "{}", name);
                prop_assert!(spec.description.chars().count() <= MAX_DESCRIPTION_CHARS);
                prop_assert!(spec.parameters["type"] == "object" && spec.parameters.to_string().len() <= MAX_SCHEMA_BYTES);
            }
        }
    }
}
