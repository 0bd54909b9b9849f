//! Images and files: a model is given them, and they stand nowhere but in the store of files.

use axum::{Router, http::header, routing::get};
use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::ids;
use everturn_test_servers::s3::S3;
use everturn_tests::{
    events::{count, data, observe},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::embedded::keys::{AUTH, create};

/// Enough of a PNG for its type, with bytes that stand nowhere else.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\npixels 7f3a9c51e2d84b60";

/// Uploads a file, and returns the answer.
async fn upload(stack: &Stack, key: Option<&str>, name: &str, bytes: &[u8]) -> (u16, Value) {
    let url = format!("{}/api/v1/agent/blobs?file_name={name}", stack.url());
    let request = stack.http.post(url).header("content-type", "image/png");
    let request = key
        .into_iter()
        .fold(request, reqwest::RequestBuilder::bearer_auth);
    let answer = request.body(bytes.to_vec()).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn uploaded(stack: &Stack, name: &str) -> String {
    let (status, blob) = upload(stack, None, name, PNG).await;
    assert_eq!(status, 201, "{blob}");
    blob["blob_id"].as_str().unwrap().to_owned()
}

/// Reads a file, and returns status and bytes.
async fn read(stack: &Stack, key: Option<&str>, id: &str) -> (u16, Vec<u8>) {
    let url = format!("{}/api/v1/agent/blobs/{id}", stack.url());
    let request = stack.http.get(url);
    let request = key
        .into_iter()
        .fold(request, reqwest::RequestBuilder::bearer_auth);
    let answer = request.send().await.unwrap();
    (
        answer.status().as_u16(),
        answer.bytes().await.unwrap().to_vec(),
    )
}

/// Begins a conversation with a message that names a file.
async fn ask_about(stack: &Stack, blob: &str) -> String {
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let message = json!({"content": "What is this?", "attachments": [{"blob_id": blob}]});
    let (status, answer) = stack.send(&conversation, &message).await;
    assert_eq!(status, 202, "{answer}");
    conversation
}

/// The images of the messages of a role that a request has, as it has them.
fn images(request: &Request) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let parts = messages
        .iter()
        .filter_map(|message| message["content"].as_array());
    let urls = parts
        .flatten()
        .filter_map(|part| part["image_url"]["url"].as_str());
    urls.map(str::to_owned).collect()
}

fn png_url() -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(PNG))
}

/// Asserts that a text has the bytes of the image in no form.
fn assert_no_bytes(place: &str, text: &str) {
    let hex = hex::encode(PNG);
    // Base64 of a longer text depends on where in it the image begins.
    let shifted = (0..3).map(|start| STANDARD.encode(&PNG[start..start + 24]));
    let marker = String::from_utf8_lossy(&PNG[8..]).into_owned();
    for form in shifted.chain([hex, marker]) {
        assert!(!text.contains(&form), "{place} has the image");
    }
}

/// A history with what its payloads hold.
async fn history(stack: &Stack, conversation: &str) -> String {
    fn decoded(value: &Value, text: &mut String) {
        match value {
            Value::String(word) => {
                text.push_str(word);
                text.push_str(&String::from_utf8_lossy(
                    &STANDARD.decode(word).unwrap_or_default(),
                ));
            }
            Value::Array(values) => values.iter().for_each(|value| decoded(value, text)),
            Value::Object(fields) => fields.values().for_each(|value| decoded(value, text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut text = String::new();
    let workflow = ids::workflow_id(conversation);
    decoded(&stack.temporal.history(&workflow).await, &mut text);
    assert!(text.contains(conversation), "payloads are read");
    text
}

/// Calls a tool once, then answers.
fn calculates(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I count.").call("calculate", &json!({"expression": "6 * 7"})),
        _ => Reply::text("A cat."),
    }
}

#[tokio::test]
async fn an_image_goes_to_the_model_and_nowhere_else() {
    let stack = Stack::new(Model::start(calculates).await).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("think.before_checkpoint");
    let blob = uploaded(&stack, "cat.png").await;
    let conversation = ask_about(&stack, &blob).await;
    stack.reached("think.before_checkpoint").await;
    worker.kill().await;
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    let message = data(&events, "user_message")[0];
    let expected = json!([{"blob_id": blob, "media_type": "image/png", "file_name": "cat.png", "bytes": PNG.len()}]);
    assert_eq!(message["attachments"], expected);
    assert_eq!(count(&events, "complete"), 1);
    // The first call was made by both workers, and then there was the result of the tool.
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(images(request), [png_url()]);
    }
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    assert!(timeline.to_string().contains(&blob), "{timeline}");
    assert_no_bytes("the timeline", &timeline.to_string());
    assert_no_bytes("an event", &json!(events).to_string());
    assert_no_bytes("the history", &history(&stack, &conversation).await);
    let dump = stack.dump().await;
    let rows = dump
        .lines()
        .filter(|row| !row.contains(&blob) || row.starts_with("messages"));
    assert_no_bytes("another table", &rows.collect::<String>());
    assert_eq!(read(&stack, None, &blob).await, (200, PNG.to_vec()));

    // The next turn has it in its context still.
    stack
        .send(&conversation, &json!({"content": "Sure?"}))
        .await;
    stack.ended(&conversation, 2).await;
    assert_eq!(images(stack.model.requests().last().unwrap()), [png_url()]);

    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    assert_eq!(stack.http.delete(url).send().await.unwrap().status(), 204);
    assert_eq!(read(&stack, None, &blob).await.0, 404);
    assert!(!stack.dump().await.contains(&blob));
}

#[tokio::test]
async fn a_message_that_names_a_wrong_file_is_refused() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Yes.")).await).await;
    stack.configure(AUTH);
    let may = ["--scope", "read,write"];
    let ours = create(&stack, &[&["--tenant", "acme"], &may[..]].concat()).await;
    let theirs = create(&stack, &[&["--tenant", "other"], &may[..]].concat()).await;
    let _running = stack.start().await;
    let (status, blob) = upload(&stack, Some(&theirs), "cat.png", PNG).await;
    assert_eq!(status, 201, "{blob}");
    let blob = blob["blob_id"].as_str().unwrap();
    assert_eq!(read(&stack, Some(&ours), blob).await.0, 404);
    assert_eq!(read(&stack, None, blob).await.0, 401);
    let post = async |path: &str, body: Value| {
        let url = format!("{}/api/v1/agent{path}", stack.url());
        let request = stack.http.post(url).bearer_auth(&ours).json(&body);
        let answer = request.send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json::<Value>().await.unwrap(),
        )
    };
    post("/conversations", json!({"id": "c"})).await;
    let rows = async || {
        let mut rows = stack.rows().await;
        // Workers renew their leases meanwhile.
        rows.retain(|(table, _)| table != "worker_leases");
        rows
    };
    let before = rows().await;
    for wrong in [blob, "blob_0"] {
        let named = json!([{"blob_id": wrong}]);
        let sent = [
            post(
                "/conversations/c/messages",
                json!({"content": "x", "attachments": named}),
            )
            .await,
            post(
                "/chat",
                json!({"message": "x", "conversation_id": "c", "attachments": named}),
            )
            .await,
        ];
        for (status, problem) in sent {
            assert_eq!((status, &problem["code"]), (404, &json!("blob_not_found")));
        }
    }
    assert_eq!(rows().await, before);
    assert_eq!(stack.model.requests().len(), 0);
}

/// Has the processes of a stack keep files in the object store.
fn in_s3(stack: &Stack, s3: &S3) {
    let (bucket, url) = (S3::BUCKET, s3.url());
    stack.configure(&format!(
        "[blobs]\nstore = \"s3\"\nbucket = \"{bucket}\"\nendpoint = \"{url}\"\nprefix = \"everturn/\"\n"
    ));
}

const S3_KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", S3::KEY_ID),
    ("AWS_SECRET_ACCESS_KEY", S3::SECRET),
];

#[tokio::test]
async fn files_are_kept_in_s3() {
    let (s3, model) = (S3::start().await, Model::start(calculates).await);
    let stack = Stack::new(model).await;
    in_s3(&stack, &s3);
    let said = stack
        .refused(&["gateway", "--listen", "127.0.0.1:0"], &[])
        .await;
    assert!(said.contains("AWS_ACCESS_KEY_ID is not set"), "{said}");
    let _gateway = stack.gateway_with(&S3_KEYS).await;
    let worker = stack.worker_with(&S3_KEYS);
    let blob = uploaded(&stack, "cat.png").await;
    let left = uploaded(&stack, "left.png").await;
    let conversation = ask_about(&stack, &blob).await;
    stack.ended(&conversation, 1).await;
    assert_eq!(images(&stack.model.requests()[0]), [png_url()]);
    assert_no_bytes("the database", &stack.dump().await);
    assert_eq!(read(&stack, None, &blob).await, (200, PNG.to_vec()));

    // Another worker has not read the file before. While the object store is away, the step waits.
    worker.kill().await;
    s3.kill().await;
    let _worker = stack.worker_with(&S3_KEYS);
    stack
        .send(&conversation, &json!({"content": "Sure?"}))
        .await;
    wait::until("the step waits for the file", || async {
        let workflow = ids::workflow_id(&conversation);
        let described = stack.temporal.describe(&workflow).await.to_string();
        described.contains("blobs_unavailable").then_some(())
    })
    .await;
    assert_eq!(
        upload(&stack, None, "x.png", PNG).await.1["code"],
        "blobs_unavailable"
    );
    s3.start_again().await;
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 2);

    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    assert_eq!(stack.http.delete(url).send().await.unwrap().status(), 204);
    assert_eq!(s3.objects("everturn"), [left.as_str()]);
    // Nobody names the other file, and a day later it goes.
    let old = "UPDATE blobs SET created_at = '2001-01-01T00:00:00Z'";
    stack.run_sql(old, old).await;
    let retention = stack.command(&["retention", "--older-than", "90d"], &S3_KEYS);
    let output = { retention }.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("removed 1 files"),
        "{said}"
    );
    assert_eq!(s3.objects("everturn"), [""; 0]);
    assert_eq!(read(&stack, None, &left).await.0, 404);
}

#[tokio::test]
async fn a_tools_image_is_a_file_of_the_conversation() {
    let script = |request: &Request| match images(request).len() {
        0 => Reply::text("I look.").call("camera", &json!({})),
        _ => Reply::text("A cat."),
    };
    let camera = get(|| async { ([(header::CONTENT_TYPE, "image/png")], PNG) });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(camera)).await });
    let agent = "llm_timeout = \"1h\"\ntools = [\"camera\"]\n";
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    stack.configure(&format!(
        "[tools.camera]\ndescription = \"Looks.\"\nmethod = \"GET\"\nurl = \"http://127.0.0.1:{port}/\"\neffect = \"read\"\n\
         [egress]\nallow = [\"127.0.0.1:{port}\"]\n"
    ));
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("What do you see?").await;
    let events = stack.ended(&conversation, 1).await;
    let result = &observe(&events, "camera")["result"];
    let (blob, found) = found_reference(result);
    assert_eq!(found["type"], "image/png");
    assert_eq!(found["bytes"], PNG.len());
    assert_eq!(images(stack.model.requests().last().unwrap()), [png_url()]);
    assert_eq!(read(&stack, None, &blob).await, (200, PNG.to_vec()));
    assert_no_bytes("an event", &json!(events).to_string());
    assert_no_bytes("the history", &history(&stack, &conversation).await);
    let url = format!("{}/api/v1/agent/conversations/{conversation}", stack.url());
    assert_eq!(stack.http.delete(url).send().await.unwrap().status(), 204);
    assert_eq!(read(&stack, None, &blob).await.0, 404);
}

/// The reference to a file in a result, wherever it stands.
fn found_reference(value: &Value) -> (String, Value) {
    let mut left = vec![value.clone()];
    while let Some(value) = left.pop() {
        if let Some(blob) = value["blob_id"].as_str() {
            return (blob.to_owned(), value.clone());
        }
        match value {
            Value::Array(values) => left.extend(values),
            Value::Object(fields) => left.extend(fields.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    panic!("no file in {value}")
}

#[tokio::test]
async fn a_model_that_takes_no_images_is_told_of_them() {
    let stack = Stack::new(Model::start(calculates).await).await;
    stack.configure("[models.\"scripted/scripted\"]\nimages = false\n");
    let _running = stack.start().await;
    let blob = uploaded(&stack, "cat.png").await;
    let conversation = ask_about(&stack, &blob).await;
    stack.ended(&conversation, 1).await;
    let request = &stack.model.requests()[0];
    assert_eq!(images(request), [""; 0]);
    let said = request.last("user");
    assert!(
        said.contains("\"cat.png\" of type image/png is attached; you cannot see images"),
        "{said}"
    );
}
