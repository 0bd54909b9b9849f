//! A conversation with the worker that writes it, and a reader that panics on everything that a reader must not see.

use std::{collections::BTreeMap, time::Duration};

use everturn_gateway::live::LiveFrame;
use everturn_proto::{LogId, SealedStep, event::Event};
use everturn_stream::{
    Announcement, InProcessStream, Part, Piece, Published, StreamOptions, StreamWriter, TextKey,
};
use tokio::time::advance;

use super::store::TestStore;

/// A gateway's interval.
pub const POLL: Duration = Duration::from_secs(1);

/// The text of a step.
pub fn key(agent_execution_id: &str, step: u32) -> TextKey {
    TextKey {
        agent_execution_id: agent_execution_id.to_owned(),
        step,
        part: Part::Text,
    }
}

/// A piece of a text, in the turn of the message `m`.
pub fn piece(key: TextKey, generation: u32, offset: usize, text: &str) -> Piece {
    Piece {
        message_id: "m".to_owned(),
        key,
        generation,
        offset,
        text: text.to_owned(),
        is_end: false,
        continues: false,
    }
}

/// A conversation and the worker that writes it.
pub struct World {
    pub store: TestStore,
    pub stream: InProcessStream,
    pub log_id: LogId,
    /// Steps saved so far.
    pub step: u32,
    pub generation: u32,
    pub text: String,
}

impl World {
    pub fn new(options: StreamOptions) -> Self {
        Self::in_store(TestStore::default(), options)
    }

    /// Makes the conversation anew in a store that other worlds have used.
    pub fn in_store(store: TestStore, options: StreamOptions) -> Self {
        let mut world = Self {
            store,
            stream: InProcessStream::new(options),
            log_id: LogId::from(""),
            step: 0,
            generation: 1,
            text: String::new(),
        };
        world.begin_anew();
        world
    }

    pub fn last_sequence(&self) -> u32 {
        self.store.last_sequence("c")
    }

    /// Removes the conversation, if it is there, and makes another one with its id.
    pub fn begin_anew(&mut self) {
        self.store.remove("c");
        self.store.add("c", "default");
        self.log_id = self.store.log_of("c").id;
    }

    pub fn key(&self) -> TextKey {
        key("run", self.step)
    }

    pub fn piece(&self, generation: u32, offset: usize, text: &str) -> Piece {
        piece(self.key(), generation, offset, text)
    }

    pub async fn say(&mut self, text: &str) {
        let piece = self.piece(self.generation, self.text.len(), text);
        self.text.push_str(text);
        if self.stream.publish(&self.log_id, piece).await.unwrap() == Published::Gap {
            let whole = self.piece(self.generation, 0, &self.text);
            assert_eq!(
                self.stream.publish(&self.log_id, whole).await.unwrap(),
                Published::Accepted
            );
        }
    }

    /// The worker claims the step, so that the store knows its generation.
    pub fn claim(&self) {
        self.store.claim("c", "run", self.generation);
    }

    /// The worker dies; another one begins the step again.
    pub fn retry(&mut self) {
        self.generation += 1;
        self.text.clear();
    }

    /// Saves the step, and announces it or not.
    pub async fn save(&mut self, is_announced: bool) {
        let data = format!(
            r#"{{"thought":"{}","agent_execution_id":"run","step":{}}}"#,
            self.text, self.step
        );
        self.store.append("c", "m", "thought", &data);
        let last_sequence = self.store.append("c", "m", "act", "{}");
        if is_announced {
            let sealed = vec![SealedStep {
                agent_execution_id: "run".to_owned(),
                step: self.step,
            }];
            self.stream
                .announce(
                    &self.log_id,
                    Announcement {
                        last_sequence,
                        sealed,
                    },
                )
                .await
                .unwrap();
        }
        self.step += 1;
        self.generation += 1;
        self.text.clear();
    }
}

/// Lets the tails do all that they can do now.
pub async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Lets time pass, and the watcher look when it is time.
pub async fn elapse(time: Duration) {
    advance(time).await;
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

/// What a reader has seen.
#[derive(Default)]
pub struct Onlooker {
    pub events: Vec<u32>,
    pub texts: BTreeMap<TextKey, (u32, String)>,
    /// The newest generation of each text that it has ever seen, at any gateway.
    newest: BTreeMap<TextKey, u32>,
    sealed_step: Option<u32>,
}

impl Onlooker {
    /// One that has these events already.
    pub fn having(events: &[Event]) -> Self {
        let mut onlooker = Self::default();
        for event in events {
            onlooker.note(event);
        }
        onlooker
    }

    fn note(&mut self, event: &Event) {
        if event.event_type == "thought" {
            let step = event.event_data.as_ref().unwrap().to_value()["step"].as_u64();
            self.sealed_step = self
                .sealed_step
                .max(step.map(|step| u32::try_from(step).unwrap()));
            self.texts
                .retain(|key, _| Some(key.step) > self.sealed_step);
        }
    }

    pub fn take(&mut self, frame: &LiveFrame) {
        match frame {
            LiveFrame::Reset { from_sequence } => {
                self.events.retain(|number| number < from_sequence);
            }
            LiveFrame::Event(event) => {
                self.events.push(event.sequence_number);
                self.note(event);
            }
            LiveFrame::TextStart(text) => {
                assert!(
                    Some(text.key.step) > self.sealed_step,
                    "a text that an event has replaced"
                );
                self.texts
                    .insert(text.key.clone(), (text.generation, text.text.clone()));
                let newest = self.newest.insert(text.key.clone(), text.generation);
                assert!(
                    newest.is_none_or(|newest| newest <= text.generation),
                    "an older generation than was seen"
                );
            }
            LiveFrame::TextDelta(piece) => {
                let (generation, text) = self
                    .texts
                    .get_mut(&piece.key)
                    .expect("a delta without its text");
                assert_eq!((*generation, text.len()), (piece.generation, piece.offset));
                text.push_str(&piece.text);
            }
            LiveFrame::TextEnd { key, .. } => assert!(self.texts.contains_key(key)),
            LiveFrame::Notice(_) => {}
        }
    }
}
