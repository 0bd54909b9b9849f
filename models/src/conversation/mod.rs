//! A conversation in the neutral form that every wire writes: user's messages, and replies with the results of their
//! calls.
//!
//! The context is the true history. Providers refuse parts of it: every call needs its result, arguments must be
//! objects, names and ids fit a pattern, texts are not empty. This module changes the unfit parts, because a refused
//! message would make every later turn of the conversation fail. Must not be here: the form of one wire.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, iter, sync::Arc};

use everturn_proto::{Json, event::Attachment, ids, turn::ToolCall, words::MessageRole};
use everturn_store::{ContextMessage, ToolResult};
use serde_json::Value;

use crate::{
    files::{SentFile, SentFiles, named_by},
    output::OutputFormat,
    port::{ModelRequest, signer},
    profile::Profile,
};

/// The text for the model about a call without a result: cancelled, or lost.
const NO_RESULT: &str = "Error: the call was not carried out to its end; there is no result.";
/// The text for the model after a cut answer, so that the model goes on.
const GO_ON: &str = "Your last message was cut at the limit of its length. Go on exactly where it ended, and repeat nothing.";
/// The first message of a context that begins in the middle of a conversation: Anthropic requires a user's message
/// first.
const EARLIER: &str = "(Earlier messages of this conversation are left out.)";
const SUMMARY: &str = "(A summary that you have written of the earlier messages of this conversation, which are left out:)";
const EMPTY: &str = "(empty message)";
/// The text before the files of results.
const OF_RESULTS: &str = "(The files that the results of your tools name:)";
const MAX_NAME_CHARS: usize = 64;

/// A conversation for one model.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Conversation {
    /// The system prompt.
    pub(crate) system: Option<String>,
    /// The messages, oldest first. The first message is a user's.
    pub(crate) messages: Vec<Message>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// A user's message, with at least one part.
    User(Vec<UserPart>),
    /// A model's reply, with a text or calls.
    Model(Reply),
}

/// A part of a user's message. Consecutive texts are one part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UserPart {
    Text(String),
    File(File),
}

/// An image or a PDF.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct File {
    pub(crate) media_type: String,
    /// The file's name, which a PDF always has.
    pub(crate) name: Option<String>,
    /// The bytes in base64.
    pub(crate) data: Arc<str>,
}

/// A model's reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reply {
    /// The answer, or the text before the calls; `None` when it has only space.
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Call>,
}

/// A call with its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The id, in the form that the provider takes.
    pub(crate) id: String,
    /// True when the id is Everturn's, because the model gave none.
    pub(crate) has_own_id: bool,
    pub(crate) name: String,
    /// The arguments, which are an object.
    pub(crate) arguments: Json,
    /// The opaque parts that the reading model has written before the call, or at the call. A part of another model is
    /// left out.
    pub(crate) signatures: Vec<Value>,
    pub(crate) result: String,
    pub(crate) is_error: bool,
}

impl File {
    pub(crate) fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Returns the file as a URL with the data in it.
    pub(crate) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

impl Conversation {
    /// Makes the conversation of a request, for a provider with this profile.
    pub(crate) fn of(request: &ModelRequest, profile: &Profile) -> Self {
        let mut reader = Reader {
            profile,
            signer: signer(&request.provider, &request.model),
            used: BTreeSet::new(),
        };
        let mut messages = Vec::new();
        let begins_with_user = |message: &ContextMessage| message.role != MessageRole::Assistant;
        if !request.messages.first().is_some_and(begins_with_user) {
            messages.push(user(EARLIER));
        }
        let mut following = request.messages.iter().skip(1);
        for message in &request.messages {
            let next = following.next();
            match message.role {
                MessageRole::Assistant => {
                    messages.extend(reader.reply(message).map(Message::Model));
                    messages.extend(files_of_results(message, &request.files));
                    let output = request.output.as_ref();
                    if let Some(complaint) = output.and_then(|it| it.complaint(message, next)) {
                        messages.push(user(&complaint));
                    } else if message.goes_on_in(next) {
                        messages.push(user(GO_ON));
                    }
                }
                MessageRole::Summary => messages.push(user(&summary(&message.content))),
                // The context of a call has no retries.
                MessageRole::Retry => {}
                MessageRole::User | MessageRole::Unknown(_) => {
                    messages.push(users(message, &request.files));
                }
            }
        }
        Self {
            system: instructions(request, profile),
            messages,
        }
    }

    /// Joins the consecutive messages of users, for providers that refuse two of them in a row.
    pub(crate) fn with_joined_users(mut self) -> Self {
        let mut joined: Vec<Message> = Vec::with_capacity(self.messages.len());
        for message in self.messages {
            match (joined.last_mut(), message) {
                (Some(Message::User(last)), Message::User(parts)) => {
                    let mut all = Parts::default();
                    for part in std::mem::take(last).into_iter().chain(parts) {
                        all.add(part);
                    }
                    *last = all.finish();
                }
                (_, message) => joined.push(message),
            }
        }
        self.messages = joined;
        self
    }
}

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text(text.to_owned())])
}

/// Returns the system prompt, with the format of the answer if the provider needs the format in words.
fn instructions(request: &ModelRequest, profile: &Profile) -> Option<String> {
    let output = request.output.as_ref();
    let has_tools = !request.tools.is_empty();
    let output = output.filter(|output| output.is_in_system(profile.kind, has_tools));
    let given = request.instructions.iter().cloned();
    let texts = given.chain(output.map(OutputFormat::instruction));
    // Anthropic refuses an empty text.
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Returns the text in place of messages that are no longer sent.
fn summary(text: &str) -> String {
    if text.trim().is_empty() {
        EARLIER.to_owned()
    } else {
        format!("{SUMMARY}\n\n{text}")
    }
}

/// The model that reads the context. It determines the ids of calls and the signatures that are sent.
struct Reader<'a> {
    profile: &'a Profile,
    signer: String,
    /// The ids of the calls so far.
    used: BTreeSet<String>,
}

impl Reader<'_> {
    /// Returns an assistant's message with the results of its calls; `None` for an empty message, which no provider
    /// accepts.
    fn reply(&mut self, message: &ContextMessage) -> Option<Reply> {
        let text = Some(&message.content).filter(|text| !text.trim().is_empty());
        let calls = message.tool_calls.iter().map(|call| {
            let mut results = message.tool_results.iter();
            let result = results.find(|result| result.execution_id == call.execution_id);
            self.call(call, result)
        });
        let reply = Reply {
            text: text.cloned(),
            calls: calls.collect(),
        };
        (reply != Reply::default()).then_some(reply)
    }

    fn call(&mut self, call: &ToolCall, result: Option<&ToolResult>) -> Call {
        let own = ids::call_id(&call.execution_id);
        let id = self.id(&call.call_id, &own);
        // Another model would refuse the signatures.
        let is_signer = call.signed_by == self.signer;
        let signatures = call.signatures.iter().filter(|_| is_signer);
        Call {
            id,
            has_own_id: call.call_id == own,
            name: fit_name(&call.tool_name),
            arguments: arguments(call.tool_input.as_ref()),
            signatures: signatures.map(|text| block(text)).collect(),
            result: result.map_or_else(|| NO_RESULT.to_owned(), result_text),
            is_error: result.is_none_or(|result| result.is_error),
        }
    }

    /// Returns the id of a call in a form that the provider takes, and that no earlier call has. A shortened id may be
    /// the id of another call.
    fn id(&mut self, given: &str, own: &str) -> String {
        let ids = self.profile.call_ids;
        let further = (1_u32..).map(|number| ids.fit("", &format!("{own}{number}")));
        let mut ids = iter::once(ids.fit(given, own)).chain(further);
        ids.find(|id| self.used.insert(id.clone()))
            .unwrap_or_default()
    }
}

/// Returns the opaque part: a block, or the text of a signature.
fn block(signature: &str) -> Value {
    let block: Option<Value> = serde_json::from_str(signature).ok();
    block
        .filter(Value::is_object)
        .unwrap_or_else(|| signature.into())
}

/// Returns the arguments as an object, because providers require an object. If the model sent another value (a cut-off
/// text), the object contains it, so that the model can still read it.
fn arguments(input: Option<&Json>) -> Json {
    match input.map(Json::to_value).unwrap_or_default() {
        Value::Object(_) => input.cloned().unwrap_or_default(),
        Value::Null => Json::of(&serde_json::json!({})),
        other => Json::of(&serde_json::json!({"invalid_arguments": other})),
    }
}

/// Returns the tool's name in a form that providers accept. A model can invent names that providers refuse to read
/// back.
fn fit_name(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(MAX_NAME_CHARS).map(fit).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// Returns a result as text. Not every wire has a flag for errors, so the text of an error begins with a mark.
fn result_text(result: &ToolResult) -> String {
    let text = match result.result.decode::<String>() {
        Ok(text) => text,
        Err(_) => result.result.as_str().to_owned(),
    };
    match (result.is_error, text.trim().is_empty()) {
        (true, _) => format!("Error: {text}"),
        (false, true) => "(empty result)".to_owned(),
        (false, false) => text,
    }
}

/// Returns a user's message with its files.
fn users(message: &ContextMessage, files: &SentFiles) -> Message {
    let mut parts = Parts::default();
    if !message.content.trim().is_empty() {
        parts.text(&message.content);
    } else if message.attachments.is_empty() {
        parts.text(EMPTY);
    }
    for attachment in &message.attachments {
        parts.file(attachment, files);
    }
    parts.message()
}

/// Returns a message with the files that the results of an assistant's calls name; `None` without files.
fn files_of_results(message: &ContextMessage, files: &SentFiles) -> Option<Message> {
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
    done: Vec<UserPart>,
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
                let name = (!file_name.is_empty()).then(|| file_name.clone());
                let name = name
                    .or_else(|| (media_type == "application/pdf").then(|| "file.pdf".to_owned()));
                self.add(UserPart::File(File {
                    media_type: media_type.clone(),
                    name,
                    data,
                }));
            }
        }
    }

    fn add(&mut self, part: UserPart) {
        match part {
            UserPart::Text(text) if self.text.is_empty() => self.text = text,
            UserPart::Text(text) => self.text(&text),
            UserPart::File(_) => {
                self.end_text();
                self.done.push(part);
            }
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.done
                .push(UserPart::Text(std::mem::take(&mut self.text)));
        }
    }

    fn finish(mut self) -> Vec<UserPart> {
        self.end_text();
        self.done
    }

    fn message(self) -> Message {
        Message::User(self.finish())
    }
}
