//! One adapted schema, or the reason why a tool is left out.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    maker::{Bounds, Maker},
    renamed::{self, Renamed},
};
use crate::{port::OfferedTool, profile::ToolSchemas, tool_rules::ToolRules};

/// The most bytes of an adapted schema. A provider reads the schema, at a cost, with every call.
const MAX_BYTES: usize = 64 * 1024;

/// A schema that the provider takes, and the names that were changed in it.
#[derive(Debug, Clone)]
pub(crate) struct Adapted {
    pub(crate) schema: Arc<Value>,
    pub(crate) renamed: Renamed,
}

/// The reason why a tool cannot be offered to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The schema allows no object at all.
    #[error(
        "the schema of its input allows no JSON object, and the arguments of a call are an object"
    )]
    NoObject,
    /// The schema is too large without references.
    #[error("the schema of its input has more than {MAX_BYTES} bytes without references")]
    TooLarge,
}

/// Returns the reason why a tool cannot be offered to a provider with these rules; `None` for a tool that can.
pub fn unfit(tool: &OfferedTool, rules: ToolRules) -> Option<Unfit> {
    adapt(&tool.parameters, rules).err()
}

/// Adapts a schema to the rules of a provider.
pub(crate) fn adapt(schema: &Value, rules: ToolRules) -> Result<Adapted, Unfit> {
    if rules.schemas == ToolSchemas::Own {
        return Ok(Adapted {
            schema: Arc::new(schema.clone()),
            renamed: Renamed::default(),
        });
    }
    // A schema without a form says nothing.
    let schema = match schema {
        Value::Null => &json!({}),
        schema => schema,
    };
    for bounds in Bounds::TRIED {
        let Ok(made) = Maker::new(schema, rules, bounds).outermost() else {
            continue;
        };
        let mut made = made.ok_or(Unfit::NoObject)?;
        let names = renamed::rename(&mut made, rules);
        if made.to_string().len() <= MAX_BYTES {
            let schema = Arc::new(made);
            let renamed = Renamed::new(names, &schema);
            return Ok(Adapted { schema, renamed });
        }
    }
    Err(Unfit::TooLarge)
}
