//! A reader that assembles texts and objects to every gap and double.

use std::collections::BTreeMap;

use everturn_stream::{Item, OpenText, StreamReader, TextKey};
use tokio::sync::mpsc;

/// What a reader has on its screen.
#[derive(Debug)]
pub struct Reader {
    texts: BTreeMap<TextKey, OpenText>,
    items: mpsc::Receiver<Item>,
}

impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Reader {
    pub async fn join(stream: &impl StreamReader, conversation_id: &str) -> Self {
        let following = stream.follow(conversation_id).await.unwrap();
        let texts = following.open.into_iter().map(|text| (text.key.clone(), text)).collect();
        Self { texts, items: following.items }
    }

    /// Takes in everything that has arrived.
    pub fn catch_up(&mut self) {
        while let Ok(item) = self.items.try_recv() {
            match item {
                Item::Start(text) => {
                    let older = self.texts.insert(text.key.clone(), text.clone());
                    assert!(older.is_none_or(|older| older.generation <= text.generation));
                }
                Item::Delta(piece) => {
                    let held = self.texts.get_mut(&piece.key).expect("a delta of a text that never started");
                    assert_eq!((held.generation, held.text.len()), (piece.generation, piece.offset));
                    held.text.push_str(&piece.text);
                    held.is_ended |= piece.is_end;
                }
                Item::Announced(news) => self.texts.retain(|key, _| {
                    !news.sealed.iter().any(|(run, step)| *run == key.agent_execution_id && *step == key.step)
                }),
            }
        }
    }

    pub fn text(&self, key: &TextKey) -> Option<&str> {
        self.texts.get(key).map(|held| held.text.as_str())
    }

    pub fn generation(&self, key: &TextKey) -> Option<u32> {
        self.texts.get(key).map(|held| held.generation)
    }
}
