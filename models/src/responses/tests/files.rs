//! Files of messages and of results.

use super::*;
use crate::client::tests::files::{AFTER, OF_RESULTS, PDF, with_files};

#[tokio::test]
async fn files_are_parts_of_messages() {
    let whole = Script::named([completed(&[message("Hi")])]);
    let asked = ask_for(false, with_files(), [whole]).await;
    let input = asked.seen[0].1["input"].as_array().unwrap();
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
    let pdf = json!({
        "type": "input_file", "filename": "plan.pdf", "file_data": "data:application/pdf;base64,BBBB",
    });
    let text = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!(
        input[0],
        json!({"type": "message", "role": "user", "content": [
            text("Look."), image, text(PDF), pdf, text(AFTER),
        ]})
    );
    let types: Vec<_> = input.iter().map(|item| &item["type"]).collect();
    assert_eq!(
        types,
        [
            "message",
            "function_call",
            "function_call_output",
            "message",
            "message"
        ]
    );
    assert_eq!(input[3]["content"], json!([text(OF_RESULTS), image]));
    assert_eq!(input[4]["content"], "And now?");
}
