//! Images and files over HTTP. Which conversation they belong to is tested with the stores.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::support::{Answer, TestGateway};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0 pixels";

async fn upload(gateway: &TestGateway, path: &str, media_type: &str, bytes: &[u8]) -> Answer {
    let request = gateway.request("POST", path);
    let request = request
        .header("content-type", media_type)
        .body(bytes.to_vec());
    Answer::of(request.send().await.unwrap()).await
}

async fn stored(gateway: &TestGateway, path: &str, media_type: &str, bytes: &[u8]) -> Value {
    let answer = upload(gateway, path, media_type, bytes).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()
}

async fn read(
    gateway: &TestGateway,
    id: &Value,
    if_none_match: Option<&str>,
) -> (u16, HeaderMap, Vec<u8>) {
    let mut request = gateway.request("GET", &format!("/blobs/{}", id.as_str().unwrap()));
    if let Some(tag) = if_none_match {
        request = request.header("if-none-match", tag);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn an_image_is_stored_and_read() {
    let gateway = TestGateway::start().await;
    let blob = stored(
        &gateway,
        "/blobs?file_name=a/k%C3%A4tzchen%22.png",
        "image/png",
        PNG,
    )
    .await;
    assert_eq!(
        (&blob["media_type"], &blob["bytes"], &blob["file_name"]),
        (
            &json!("image/png"),
            &json!(PNG.len()),
            &json!("kätzchen\".png")
        )
    );
    let (status, headers, bytes) = read(&gateway, &blob["blob_id"], None).await;
    assert_eq!((status, bytes.as_slice()), (200, PNG));
    let expected = [
        ("content-type", "image/png"),
        (
            "content-disposition",
            "inline; filename*=UTF-8''k%C3%A4tzchen%22.png",
        ),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "default-src 'none'; sandbox; frame-ancestors 'none'",
        ),
        ("cache-control", "private, no-cache"),
    ];
    for (name, value) in expected {
        assert_eq!(headers[name], value, "{name}");
    }
    let tag = format!("\"{}\"", blob["sha256"].as_str().unwrap());
    assert_eq!(headers["etag"], tag.as_str());
    let (status, headers, bytes) = read(&gateway, &blob["blob_id"], Some(&tag)).await;
    assert_eq!((status, bytes.len()), (304, 0));
    assert_eq!(headers["content-security-policy"], expected[3].1);
    assert_eq!(
        read(&gateway, &blob["blob_id"], Some("\"other\"")).await.0,
        200
    );
}

#[tokio::test]
async fn a_part_of_a_file_is_read() {
    let gateway = TestGateway::start().await;
    let blob = stored(&gateway, "/blobs", "text/plain", b"0123456789").await;
    let tag = format!("\"{}\"", blob["sha256"].as_str().unwrap());
    let path = format!("/blobs/{}", blob["blob_id"].as_str().unwrap());
    let read = async |range: &str, if_range: &str| {
        let request = gateway.request("GET", &path).header("range", range);
        let answer = request.header("if-range", if_range).send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.text().await.unwrap())
    };
    for (range, place, text) in [
        ("bytes=2-4", "bytes 2-4/10", "234"),
        ("bytes=7-99", "bytes 7-9/10", "789"),
        ("bytes=-1", "bytes 9-9/10", "9"),
    ] {
        let (status, headers, body) = read(range, &tag).await;
        assert_eq!((status, body.as_str()), (206, text), "{range}");
        assert_eq!(headers["content-range"], place, "{range}");
        assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["etag"], tag.as_str());
    }
    for (range, if_range) in [("bytes=0-1,3-4", tag.as_str()), ("bytes=2-4", "\"other\"")] {
        let (status, headers, body) = read(range, if_range).await;
        assert_eq!((status, body.as_str()), (200, "0123456789"), "{range}");
        assert_eq!(headers["accept-ranges"], "bytes");
    }
    let (status, headers, body) = read("bytes=10-", &tag).await;
    assert_eq!(
        (status, &headers["content-range"]),
        (416, &"bytes */10".parse().unwrap())
    );
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["code"], "range_not_satisfiable");
}

#[tokio::test]
async fn nothing_that_a_browser_would_run_is_shown() {
    let gateway = TestGateway::start().await;
    let script = b"<script>alert(1)</script>";
    for media_type in [
        "text/html",
        "image/svg+xml",
        "application/xhtml+xml",
        "",
        "x",
    ] {
        let refused = upload(&gateway, "/blobs", media_type, script).await;
        refused.assert_problem(415, "blob_type_refused");
    }
    upload(&gateway, "/blobs", "image/png", script)
        .await
        .assert_problem(415, "blob_type_refused");
    upload(&gateway, "/blobs", "text/plain", b"\xff\xfe")
        .await
        .assert_problem(415, "blob_type_refused");
    upload(&gateway, "/blobs", "text/plain", b"")
        .await
        .assert_problem(400, "invalid_body");
    // A text is a text, whatever it says, and is saved as a file.
    let blob = stored(&gateway, "/blobs", "text/plain; charset=latin1", script).await;
    assert_eq!(
        (&blob["media_type"], &blob["file_name"]),
        (&json!("text/plain"), &json!(""))
    );
    let (_, headers, _) = read(&gateway, &blob["blob_id"], None).await;
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(headers["content-disposition"], "attachment");
    assert_eq!(headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn a_file_has_a_largest_size() {
    let gateway = TestGateway::start().await;
    let limit = 10 * 1024 * 1024;
    let large = vec![b'x'; limit + 1];
    upload(&gateway, "/blobs", "text/plain", &large)
        .await
        .assert_problem(413, "blob_too_large");
    // Its length is not said before, so it is read up to the limit.
    let chunks = large
        .chunks(1024 * 1024)
        .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()));
    let chunks: Vec<_> = chunks.collect();
    let request = gateway
        .request("POST", "/blobs")
        .header("content-type", "text/plain");
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let answer = Answer::of(request.body(body).send().await.unwrap()).await;
    answer.assert_problem(413, "blob_too_large");
    let blob = stored(&gateway, "/blobs", "text/plain", &large[..limit]).await;
    assert_eq!(blob["bytes"], limit);
}

#[tokio::test]
async fn a_key_makes_an_upload_repeatable() {
    let gateway = TestGateway::start().await;
    let with_key = async |bytes: &'static [u8]| {
        let request = gateway
            .request("POST", "/blobs")
            .header("content-type", "image/png");
        let request = request.header("idempotency-key", "k").body(bytes);
        Answer::of(request.send().await.unwrap()).await
    };
    let first = with_key(PNG).await.json();
    assert_eq!(with_key(PNG).await.json(), first);
    let other = with_key(b"\x89PNG\r\n\x1a\n others").await;
    other.assert_problem(409, "idempotency_conflict");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let gateway = TestGateway::start().await;
    gateway
        .get("/blobs/blob_0")
        .await
        .assert_problem(404, "blob_not_found");
    gateway
        .get("/blobs/a%20b")
        .await
        .assert_problem(400, "invalid_id");
}

#[tokio::test]
async fn a_message_has_text_or_attachments() {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    let send = async |body: Value| gateway.post("/conversations/c/messages", &body).await;
    send(json!({"content": " ", "attachments": []}))
        .await
        .assert_problem(400, "invalid_message");
    send(json!({"attachments": [{"blob_id": "a b"}]}))
        .await
        .assert_problem(400, "invalid_id");
    let many: Vec<_> = (0..11)
        .map(|n| json!({"blob_id": format!("blob_{n}")}))
        .collect();
    send(json!({"content": "x", "attachments": many}))
        .await
        .assert_problem(413, "too_many_attachments");
    let blob = stored(&gateway, "/blobs", "image/png", PNG).await;
    let attachment = json!({"blob_id": blob["blob_id"]});
    let answer = send(json!({"attachments": [attachment, attachment]})).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let attached: Value = serde_json::from_str(&gateway.store.messages()[0].3).unwrap();
    assert_eq!(attached.as_array().unwrap().len(), 1);
    assert_eq!(attached[0]["blob_id"], blob["blob_id"]);
}
