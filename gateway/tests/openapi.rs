//! The OpenAPI document: it is committed, complete and served, and agrees with the other documentation.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use everturn_gateway::{openapi_document, problem::Code};
use serde_json::{Value, json};

use crate::support::TestGateway;

fn document() -> Value {
    serde_json::from_str(&openapi_document()).unwrap()
}

/// Every operation, by its name: `GET /path/{id}`.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap().iter();
        found.extend(
            operations.map(|(method, described)| {
                (format!("{} {path}", method.to_uppercase()), described)
            }),
        );
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let (file, text) = (root().join("docs/openapi.json"), openapi_document());
    if std::env::var_os("EVERTURN_UPDATE_OPENAPI").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == text,
        "run `make openapi`, and look at what has changed"
    );
}

#[tokio::test]
async fn the_document_is_served_and_can_be_browsed() {
    let gateway = TestGateway::start().await;
    let served = gateway.get("/api/v1/openapi.json").await;
    assert_eq!(
        (served.status.as_u16(), served.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(served.text, openapi_document());

    let page = gateway.get("/docs").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html"),
        "after a redirect to /docs/"
    );
    assert!(
        page.header("content-security-policy")
            .starts_with("default-src 'none'; script-src 'self';")
    );
    assert!(
        !page.text.contains("<script>") && !page.text.contains("http"),
        "nothing inline or foreign: {}",
        page.text
    );
    let start = gateway.get("/docs/swagger-initializer.js").await;
    assert!(
        start.text.contains("/api/v1/openapi.json"),
        "{}",
        start.text
    );
    for file in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        assert_eq!(
            gateway.get(&format!("/docs/{file}")).await.status,
            200,
            "{file}"
        );
    }
    gateway
        .get("/docs/none")
        .await
        .assert_problem(404, "not_found");
}

#[tokio::test]
async fn every_error_page_is_served_where_problems_point() {
    let gateway = TestGateway::start().await;
    let pages = fs::read_dir(root().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages: Vec<_> = pages.collect();
    assert!(pages.len() >= Code::ALL.len());
    for page in pages {
        let code = page.file_stem().unwrap().to_str().unwrap();
        let answer = gateway.get(&format!("/docs/errors/{code}")).await;
        assert_eq!(
            answer.text,
            fs::read_to_string(&page).unwrap(),
            "{code} is missing in routes/docs.rs"
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    gateway
        .get("/docs/errors/none")
        .await
        .assert_problem(404, "not_found");
}

#[test]
fn api_md_has_the_same_endpoints() {
    let text = fs::read_to_string(root().join("docs/api.md")).unwrap();
    let table = text
        .split("\n\n")
        .find(|part| part.starts_with("| method and path |"))
        .unwrap();
    let cells = table.lines().filter_map(|line| line.split('|').nth(1));
    let listed: BTreeSet<_> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let document = document();
    let described: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        listed, described,
        "docs/api.md on the left, the document on the right"
    );
}

#[test]
fn no_endpoint_is_served_without_a_description() {
    let mut files = vec![root().join("gateway/src")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        // The messages of this protocol are no resources, and have a specification of their own (docs/api/mcp.md).
        if path.ends_with("http/routes/mcp/mod.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for call in [".route(", ".route_service(", ".nest_service("] {
            assert!(
                !text.contains(call),
                "{}: use routes!(), which needs an annotation",
                path.display()
            );
        }
    }
}

#[test]
fn every_operation_is_described_alike() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (name, described) in operations(&document) {
        assert!(
            ids.insert(described["operationId"].as_str().unwrap()),
            "{name} has another one's operationId"
        );
        assert!(
            described["summary"].as_str().unwrap().ends_with('.'),
            "{name}: a sentence says what it is for"
        );
        assert_eq!(described["tags"].as_array().unwrap().len(), 1, "{name}");
        for (status, response) in described["responses"].as_object().unwrap() {
            assert!(
                response["headers"]["x-request-id"].is_object(),
                "{name} {status}"
            );
            let is_problem = status.starts_with(['4', '5']);
            assert_eq!(
                response["content"]["application/problem+json"].is_object(),
                is_problem,
                "{name} {status}"
            );
        }
        // What the layers before a handler answer; an operation that is open to all says so.
        if described["security"] != json!([{}]) {
            for status in ["401", "429", "500", "503"] {
                assert!(
                    described["responses"][status].is_object(),
                    "{name} lacks {status}"
                );
            }
        }
    }
    let codes = &document["components"]["schemas"]["Code"]["enum"];
    let known: Vec<_> = Code::ALL
        .iter()
        .map(|code| Value::from(code.as_str()))
        .collect();
    assert_eq!(codes.as_array().unwrap(), &known);
}
