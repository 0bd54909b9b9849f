//! Frames of a transcript, as they are on the wire.

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_client::sse::Message;
use serde_json::{Value, json};

/// A frame, or the end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) json: Value,
    /// What it is on the wire; nothing for the end of a connection.
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    pub(crate) fn of(event: &str, data: &Value) -> Self {
        Self::from(json!({"event": event, "data": data}))
    }

    /// True where the transcript's connection ends.
    pub(crate) fn is_cut(&self) -> bool {
        self.json["cut"] == true
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.json["id"].as_str()
    }

    /// What a client's state takes.
    pub(crate) fn parts(&self) -> (Option<&str>, Value) {
        (self.id(), self.json["data"].clone())
    }

    /// The number of the event that it is.
    pub(crate) fn sequence_number(&self) -> Option<u64> {
        let data = &self.json["data"];
        let number = data["sequence_number"].as_u64().filter(|it| *it > 0);
        number.filter(|_| data["type"].is_string())
    }
}

impl From<Value> for Frame {
    fn from(json: Value) -> Self {
        let bytes = bytes_of(&json);
        Self { json, bytes }
    }
}

fn bytes_of(frame: &Value) -> Vec<u8> {
    if frame["cut"] == true {
        return Vec::new();
    }
    let mut text = String::new();
    for name in ["id", "event"] {
        if let Some(value) = frame[name].as_str() {
            text.extend([name, ": ", value, "\n"]);
        }
    }
    if let Some(data) = frame.get("data") {
        let data = data
            .as_str()
            .map_or_else(|| data.to_string(), str::to_owned);
        for line in data.split('\n') {
            text.extend(["data: ", line, "\n"]);
        }
    }
    text.push('\n');
    text.into_bytes()
}

pub(crate) fn frames(transcript: &Value) -> Vec<Frame> {
    let frames = transcript["frames"].as_array().unwrap();
    frames.iter().cloned().map(Frame::from).collect()
}

pub(crate) fn decoded(chunk: &Value) -> Vec<u8> {
    STANDARD.decode(chunk.as_str().unwrap()).unwrap()
}

/// A message as `sse.json` has it.
pub(crate) fn message(message: &Message) -> Value {
    let mut json = json!({"event": message.event, "data": message.data});
    if let Some(id) = &message.id {
        json["id"] = id.as_str().into();
    }
    if let Some(retry_ms) = message.retry_ms {
        json["retry"] = retry_ms.into();
    }
    json
}
