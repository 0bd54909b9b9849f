//! Assembles what a reader gets, and checks the rules that no frame may break:
//!
//! - Events are numbered 1, 2, 3, …, over all connections: none is lost, none comes twice (invariant 8, a
//!   cursor never expires).
//! - The generation of a text never becomes smaller, the offset of a piece is the number of bytes that the reader has,
//!   and all connections show the same text for one generation (invariant 7, fenced deltas).
//! - An event seals a text: it has the whole text. Nothing of the text comes after it, not even on the next connection.

use std::collections::{BTreeMap, HashMap};

use everturn_proto::words::EventType;
use serde_json::Value;

use crate::reader::frames::SseFrame;

/// The key of a text: agent execution, step and part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextKey {
    /// The agent execution.
    pub agent_execution_id: String,
    /// The step of the agent execution.
    pub step: u64,
    /// `text` or `reasoning`.
    pub part: String,
}

/// The text of one generation, as far as it was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownText {
    /// The longest text that was shown of this generation.
    pub text: String,
    /// Whether its `text_end` came.
    pub is_ended: bool,
}

/// Everything that a reader has assembled.
#[derive(Debug, Default)]
pub struct View {
    events: Vec<Value>,
    last_id: Option<String>,
    /// The texts that are open on this connection, each with its generation.
    open: BTreeMap<TextKey, (u64, String)>,
    /// Everything that was ever shown of each text, by generation.
    shown: BTreeMap<TextKey, BTreeMap<u64, ShownText>>,
    /// The last step of each agent execution whose text an event has sealed.
    sealed: HashMap<String, u64>,
}

impl View {
    /// Returns the sequence number of the last event.
    pub fn cursor(&self) -> usize {
        self.events.len()
    }

    /// Returns what a browser comes back with: the `id` of the last event.
    pub fn last_id(&self) -> &str {
        self.last_id.as_deref().unwrap_or("0")
    }

    /// Returns every event, as its frame has it.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    /// Returns the texts that are open, each as it is now.
    pub fn open(&self) -> impl Iterator<Item = (&TextKey, &str)> {
        self.open
            .iter()
            .map(|(key, (_, text))| (key, text.as_str()))
    }

    /// Returns what was shown of a text, by generation.
    pub fn shown(&self, key: &TextKey) -> Option<&BTreeMap<u64, ShownText>> {
        self.shown.get(key)
    }

    /// Returns how many turns have ended.
    pub fn turns_ended(&self) -> usize {
        self.events
            .iter()
            .filter(|event| {
                EventType::from(word(event, "type")).ends_turn(
                    word(event, "conversation_id"),
                    word(event, "message_id"),
                    event["agent_execution_id"].as_str(),
                )
            })
            .count()
    }

    /// Notes that a new connection begins: it sends the open texts anew.
    pub fn begin_anew(&mut self) {
        self.open.clear();
    }

    /// Takes a frame. An error says which rule the frame breaks.
    pub fn take(&mut self, frame: &SseFrame) -> Result<(), String> {
        let taken = match frame.event.as_str() {
            _ if frame.id.is_some() || frame.data.get("sequence_number").is_some() => {
                self.event(frame)
            }
            "text_start" => self.text_start(&frame.data),
            "text_delta" => self.text_delta(&frame.data),
            "text_end" => self.text_end(&frame.data),
            // There will be more types, which clients must skip.
            _ => Ok(()),
        };
        taken.map_err(|rule| {
            format!(
                "{rule}: {} {}, with {} events",
                frame.event,
                frame.data,
                self.events.len()
            )
        })
    }

    fn event(&mut self, frame: &SseFrame) -> Result<(), String> {
        let data = &frame.data;
        let number = u64::from(frame.id.unwrap_or_default());
        ensure(
            data["sequence_number"] == number,
            "its id is not its number",
        )?;
        ensure(
            data["type"] == frame.event.as_str(),
            "its type is not its name",
        )?;
        ensure(
            number == self.events.len() as u64 + 1,
            "it is not the next event",
        )?;
        self.events.push(data.clone());
        self.last_id.clone_from(&frame.cursor);
        let step = match EventType::from(frame.event.as_str()) {
            EventType::Thought | EventType::AssistantMessage => data["step"].as_u64(),
            event_type if event_type.ends_agent_execution() => Some(u64::MAX),
            _ => None,
        };
        if let Some(step) = step {
            let agent_execution_id = word(data, "agent_execution_id").to_owned();
            self.open
                .retain(|key, _| key.agent_execution_id != agent_execution_id || key.step > step);
            let sealed = self.sealed.entry(agent_execution_id).or_default();
            *sealed = step.max(*sealed);
        }
        Ok(())
    }

    fn text_start(&mut self, data: &Value) -> Result<(), String> {
        let (key, generation) = (self.unsealed(data)?, generation(data)?);
        let newest = self
            .shown
            .get(&key)
            .and_then(|shown| shown.last_key_value())
            .map_or(0, |(newest, _)| *newest);
        ensure(generation >= newest, "its generation goes back")?;
        let text = word(data, "text").to_owned();
        self.note(&key, generation, &text)?;
        self.open.insert(key, (generation, text));
        Ok(())
    }

    fn text_delta(&mut self, data: &Value) -> Result<(), String> {
        let (key, generation) = (self.unsealed(data)?, generation(data)?);
        let (open, text) = self
            .open
            .get_mut(&key)
            .ok_or("it continues a text that was not begun")?;
        ensure(*open == generation, "it continues another generation")?;
        ensure(
            data["offset"] == text.len(),
            "its offset is not what one has",
        )?;
        text.push_str(word(data, "text"));
        let text = text.clone();
        self.note(&key, generation, &text)
    }

    fn text_end(&mut self, data: &Value) -> Result<(), String> {
        let (key, generation) = (self.unsealed(data)?, generation(data)?);
        let (open, text) = self
            .open
            .get(&key)
            .ok_or("it ends a text that was not begun")?;
        ensure(*open == generation, "it ends another generation")?;
        let shown = self
            .shown
            .get_mut(&key)
            .and_then(|shown| shown.get_mut(&generation));
        let shown = shown.ok_or("it ends a text that was not shown")?;
        ensure(
            shown.text == *text,
            "it ends a text before what was shown of it",
        )?;
        shown.is_ended = true;
        Ok(())
    }

    /// Returns the key of the text that a frame belongs to. An error means that an event has sealed this text.
    fn unsealed(&self, data: &Value) -> Result<TextKey, String> {
        let step = data["step"].as_u64().ok_or("it names no step")?;
        let agent_execution_id = word(data, "agent_execution_id").to_owned();
        let is_open = self
            .sealed
            .get(&agent_execution_id)
            .is_none_or(|sealed| step > *sealed);
        ensure(is_open, "its text is sealed")?;
        Ok(TextKey {
            agent_execution_id,
            step,
            part: word(data, "part").to_owned(),
        })
    }

    /// Notes the text that the reader has now.
    fn note(&mut self, key: &TextKey, generation: u64, text: &str) -> Result<(), String> {
        let shown = self
            .shown
            .entry(key.clone())
            .or_default()
            .entry(generation)
            .or_default();
        let is_longer = text.len() > shown.text.len();
        let (long, short) = if is_longer {
            (text, shown.text.as_str())
        } else {
            (shown.text.as_str(), text)
        };
        ensure(
            long.starts_with(short),
            "this generation was shown with another text",
        )?;
        if is_longer {
            ensure(!shown.is_ended, "this text had ended")?;
            text.clone_into(&mut shown.text);
        }
        Ok(())
    }
}

fn generation(data: &Value) -> Result<u64, String> {
    data["generation"]
        .as_u64()
        .ok_or_else(|| "it names no generation".to_owned())
}

fn word<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or_default()
}

fn ensure(is_kept: bool, rule: &str) -> Result<(), String> {
    if is_kept {
        Ok(())
    } else {
        Err(rule.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(name: &str, data: &Value) -> SseFrame {
        let id = data["sequence_number"]
            .as_u64()
            .map(|id| u32::try_from(id).unwrap());
        let mut data = data.clone();
        data["type"] = name.into();
        if id.is_none() || matches!(name, "thought" | "complete") {
            data["agent_execution_id"] = "run".into();
        }
        if id.is_none() {
            (data["step"], data["part"]) = (0.into(), "text".into());
        }
        SseFrame {
            id,
            cursor: id.map(|id| id.to_string()),
            event: name.to_owned(),
            data,
        }
    }

    /// Takes frames. Returns which frame breaks which rule.
    fn broken(frames: &[(&str, Value)]) -> Option<(usize, String)> {
        let mut view = View::default();
        let taken = frames.iter().enumerate().map(|(at, (name, data))| {
            if *name == "again" {
                view.begin_anew();
                return Ok(());
            }
            view.take(&frame(name, data))
                .map_err(|error| (at, error.split(':').next().unwrap().to_owned()))
        });
        taken.collect::<Result<(), _>>().err()
    }

    fn start(generation: u32, text: &str) -> (&'static str, Value) {
        (
            "text_start",
            json!({"generation": generation, "text": text}),
        )
    }

    fn delta(generation: u32, offset: u32, text: &str) -> (&'static str, Value) {
        (
            "text_delta",
            json!({"generation": generation, "offset": offset, "text": text}),
        )
    }

    fn event(name: &'static str, number: u32) -> (&'static str, Value) {
        (name, json!({"sequence_number": number, "step": 0}))
    }

    #[test]
    fn a_text_that_is_tried_again_and_read_again() {
        let frames = [
            event("user_message", 1),
            ("replay", json!({})),
            start(1, "Ol"),
            delta(1, 2, "d"),
            start(2, ""),
            delta(2, 0, "Né"),
            ("again", json!({})),
            start(2, "N"),
            delta(2, 1, "éw"),
            ("text_end", json!({"generation": 2})),
            event("thought", 2),
            event("complete", 3),
        ];
        assert_eq!(broken(&frames), None);
    }

    #[test]
    fn every_rule_is_kept() {
        let again = || ("again", json!({}));
        let cases = [
            (vec![event("act", 2)], "it is not the next event"),
            (
                vec![event("act", 1), event("act", 1)],
                "it is not the next event",
            ),
            (vec![start(2, ""), start(1, "")], "its generation goes back"),
            (
                vec![start(2, ""), again(), start(1, "")],
                "its generation goes back",
            ),
            (
                vec![delta(1, 0, "a")],
                "it continues a text that was not begun",
            ),
            (
                vec![start(1, "a"), again(), delta(1, 1, "b")],
                "it continues a text that was not begun",
            ),
            (
                vec![start(1, "a"), delta(2, 1, "b")],
                "it continues another generation",
            ),
            (
                vec![start(1, "é"), delta(1, 1, "b")],
                "its offset is not what one has",
            ),
            (
                vec![start(1, "ab"), again(), start(1, "x")],
                "this generation was shown with another text",
            ),
            (
                vec![event("thought", 1), start(1, "a")],
                "its text is sealed",
            ),
            (
                vec![event("complete", 1), again(), start(1, "a")],
                "its text is sealed",
            ),
            (
                vec![start(1, "a"), event("thought", 1), delta(1, 1, "b")],
                "its text is sealed",
            ),
            (
                vec![
                    start(1, "a"),
                    ("text_end", json!({"generation": 1})),
                    delta(1, 1, "b"),
                ],
                "this text had ended",
            ),
        ];
        for (frames, rule) in cases {
            assert_eq!(broken(&frames), Some((frames.len() - 1, rule.to_owned())));
        }
    }
}
