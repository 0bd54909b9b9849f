//! A reader that assembles texts and objects to every gap and double.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use everturn_stream::{Announcement, Item, OpenText, StreamReader, StreamWriter, TextKey};
use tokio::sync::mpsc;

use crate::support::{append, next};

/// Numbers of marker announcements; no test announces such a large one itself.
static MARKER: AtomicU32 = AtomicU32::new(1_000_000);

/// Announces a marker: whoever receives it has received everything before it.
pub async fn mark(stream: &impl StreamWriter, conversation_id: &str) -> Item {
    let news = Announcement {
        last_sequence: MARKER.fetch_add(1, Ordering::Relaxed),
        sealed: Vec::new(),
    };
    stream
        .announce(&conversation_id.into(), news.clone())
        .await
        .unwrap();
    Item::Announced(news)
}

/// What a reader has on its screen.
#[derive(Debug)]
pub struct Reader {
    conversation_id: String,
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
        let following = stream.follow(&conversation_id.into()).await.unwrap();
        let texts = following
            .open
            .into_iter()
            .map(|text| (text.key.clone(), text))
            .collect();
        Self {
            conversation_id: conversation_id.to_owned(),
            texts,
            items: following.items,
        }
    }

    /// Takes in everything that was published before.
    pub async fn catch_up(&mut self, stream: &impl StreamWriter) {
        let marker = mark(stream, &self.conversation_id).await;
        loop {
            let item = next(&mut self.items).await.expect("the reader was cut");
            if item == marker {
                return;
            }
            self.take(item);
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Start(text) => {
                let older = self.texts.insert(text.key.clone(), text.clone());
                assert!(older.is_none_or(|older| older.generation <= text.generation));
            }
            Item::Delta(piece) => append(self.texts.get_mut(&piece.key), &piece),
            Item::Notice(_) => {}
            Item::Announced(news) => self.texts.retain(|key, _| {
                !news.sealed.iter().any(|sealed| {
                    sealed.agent_execution_id == key.agent_execution_id && sealed.step == key.step
                })
            }),
        }
    }

    pub fn text(&self, key: &TextKey) -> Option<&str> {
        self.texts.get(key).map(|held| held.text.as_str())
    }

    pub fn generation(&self, key: &TextKey) -> Option<u32> {
        self.texts.get(key).map(|held| held.generation)
    }
}
