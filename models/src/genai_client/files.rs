//! Files in genai's messages. The files of a user's message are parts of the message. The files of tool results are in
//! an additional user message after the results (docs/libraries.md, genai: results are text).

use everturn_proto::event::Attachment;
use everturn_store::ContextMessage;
use genai::chat::{ChatMessage, ContentPart, MessageContent};

use crate::{
    files::named_by,
    files::{SentFile, SentFiles},
};

/// The text before the files of results.
const OF_RESULTS: &str = "(The files that the results of your tools name:)";

/// Returns a user's message with its files.
pub(super) fn of_message(message: &ContextMessage, files: &SentFiles) -> ChatMessage {
    let mut parts = Parts::default();
    if !message.content.trim().is_empty() {
        parts.text(&message.content);
    }
    for attachment in &message.attachments {
        parts.file(attachment, files);
    }
    parts.message()
}

/// Returns a message with the files that the results of an assistant's calls name; `None` without files.
pub(super) fn of_results(message: &ContextMessage, files: &SentFiles) -> Option<ChatMessage> {
    let named: Vec<Attachment> = message.tool_results.iter().flat_map(named_by).collect();
    if named.is_empty() {
        return None;
    }
    let mut parts = Parts::default();
    parts.text(OF_RESULTS);
    for attachment in &named {
        parts.file(attachment, files);
    }
    Some(parts.message())
}

/// The parts of a message. Consecutive texts are one part.
#[derive(Default)]
struct Parts {
    done: Vec<ContentPart>,
    text: String,
}

impl Parts {
    fn text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    fn file(&mut self, attachment: &Attachment, files: &SentFiles) {
        let Attachment {
            file_name,
            media_type,
            ..
        } = attachment;
        let heading = format!("File {file_name:?} ({media_type}):");
        match files.of(attachment) {
            SentFile::Told(sentence) => self.text(&sentence),
            SentFile::Text(text) => self.text(&format!("{heading}\n\n{text}")),
            SentFile::Base64(data) => {
                if !file_name.is_empty() {
                    self.text(&heading);
                }
                self.end_text();
                let name = (!file_name.is_empty()).then(|| file_name.clone());
                let name = name
                    .or_else(|| (media_type == "application/pdf").then(|| "file.pdf".to_owned()));
                let part = ContentPart::from_binary_base64(media_type.as_str(), data, name);
                self.done.push(part);
            }
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.done.push(ContentPart::from_text(text));
        }
    }

    fn message(mut self) -> ChatMessage {
        self.end_text();
        ChatMessage::user(MessageContent::from_parts(self.done))
    }
}
