//! The OpenAPI document as tests read it.

use everturn_gateway::openapi;
use serde_json::Value;

/// One endpoint of the document.
pub struct Operation<'a> {
    /// `GET /path/{id}`.
    pub name: String,
    pub method: String,
    pub path: &'a str,
    pub described: &'a Value,
}

pub fn document() -> Value {
    serde_json::from_str(&openapi::text()).unwrap()
}

/// Every operation, by path.
pub fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, described) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            found.push(Operation { name: format!("{method} {path}"), method, path, described });
        }
    }
    found
}
