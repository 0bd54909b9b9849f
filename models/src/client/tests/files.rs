//! Files of messages and of results, as each wire has them.

use everturn_proto::event::Attachment;
use serde_json::{Value, json};

use super::*;
use crate::files::{SentFile, SentFiles};

fn attachment(id: &str, media_type: &str, file_name: &str) -> Attachment {
    Attachment {
        blob_id: id.into(),
        media_type: media_type.into(),
        file_name: file_name.into(),
        bytes: 3,
    }
}

/// A message with an image, a PDF, a text and a file that is gone; then a result with an image.
pub(crate) fn with_files() -> ModelRequest {
    let mut files = SentFiles::default();
    files.add("blob_png", SentFile::Base64("AAAA".into()));
    files.add("blob_pdf", SentFile::Base64("BBBB".into()));
    files.add("blob_text", SentFile::Text("one\ntwo".into()));
    let message = ContextMessage {
        attachments: vec![
            attachment("blob_png", "image/png", ""),
            attachment("blob_pdf", "application/pdf", "plan.pdf"),
            attachment("blob_text", "text/csv", "n.csv"),
            attachment("blob_gone", "image/png", "gone.png"),
        ],
        ..user("Look.")
    };
    let shot = r#"[{"blob_id":"blob_png","bytes":3,"type":"image/png"},"done"]"#;
    let assistant = ContextMessage {
        tool_calls: vec![call(1, "weather", "{}")],
        tool_results: vec![result(1, shot, false)],
        ..ContextMessage::text(MessageRole::Assistant, "")
    };
    ModelRequest {
        files,
        ..request(vec![message, assistant, user("And now?")])
    }
}

pub(crate) const AFTER: &str = "File \"n.csv\" (text/csv):\n\none\ntwo\n\n\
     (The file \"gone.png\" of type image/png is no longer there.)";
pub(crate) const OF_RESULTS: &str = "(The files that the results of your tools name:)";
pub(crate) const PDF: &str = "File \"plan.pdf\" (application/pdf):";

/// The body of the request.
async fn sent(kind: ProviderKind) -> Value {
    let server = Server::start([Script::status(400, "{}")]).await;
    let (_, reply) = hear(&client(kind, server.base_url()), with_files()).await;
    assert!(reply.is_err());
    server.seen()[0].body.clone()
}

#[tokio::test]
async fn files_for_openai() {
    let body = sent(ProviderKind::OpenAi).await;
    let messages = body["messages"].as_array().unwrap();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let pdf = json!({"type": "file", "file": {
        "filename": "plan.pdf", "file_data": "data:application/pdf;base64,BBBB",
    }});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        messages[1]["content"],
        json!([text("Look."), image, text(PDF), pdf, text(AFTER)])
    );
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    let content = messages[5]["content"].as_array().unwrap();
    assert_eq!(content[..2], [text(OF_RESULTS), image]);
}

#[tokio::test]
async fn files_for_anthropic() {
    let body = sent(ProviderKind::Anthropic).await;
    let messages = body["messages"].as_array().unwrap();
    let source = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    let image = json!({"type": "image", "source": source("image/png", "AAAA")});
    let pdf = json!({"type": "document", "source": source("application/pdf", "BBBB")});
    let text = |text: &str| json!({"type": "text", "text": text});
    let last =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    assert_eq!(
        messages[0]["content"],
        json!([text("Look."), image, text(PDF), pdf, last(AFTER)])
    );
    assert_eq!(messages.len(), 3, "the files are beside the results");
    let content = messages[2]["content"].as_array().unwrap();
    assert_eq!(content[0]["type"], "tool_result");
    assert_eq!(content[1..], [text(OF_RESULTS), image, last("And now?")]);
}

#[tokio::test]
async fn files_for_gemini() {
    let body = sent(ProviderKind::Gemini).await;
    let contents = body["contents"].as_array().unwrap();
    let data = |mime: &str, data: &str| json!({"inlineData": {"mimeType": mime, "data": data}});
    let parts = contents[0]["parts"].as_array().unwrap();
    assert_eq!(
        parts,
        &[
            json!({"text": "Look."}),
            data("image/png", "AAAA"),
            json!({"text": PDF}),
            data("application/pdf", "BBBB"),
            json!({"text": AFTER}),
        ]
    );
    let of_results = &contents[3]["parts"];
    assert_eq!(of_results[0]["text"], OF_RESULTS, "{contents:#?}");
    assert_eq!(of_results[1], data("image/png", "AAAA"));
}
