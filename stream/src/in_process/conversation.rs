//! The open texts of one conversation, its followers, and the fence (invariant 7, fenced deltas).

use std::{collections::BTreeMap, num::NonZeroUsize, time::Duration};

use everturn_proto::{SealedStep, limits::MAX_TEXT_BYTES};
use lru::LruCache;
use tokio::{sync::mpsc, time::Instant};

use super::StreamOptions;
use crate::api::{Announcement, Following, Item, Notice, OpenText, Piece, Published, TextKey};

/// The stream's state of one conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    open: BTreeMap<TextKey, Held>,
    /// The newest generation of each agent execution; the agent executions with the newest pieces are kept. Generations
    /// from the store rise over an agent execution, so a piece of an older generation is late, whatever its step.
    fences: LruCache<String, u32>,
    /// Steps whose text was replaced by a saved event; the most recently sealed steps are kept.
    sealed: LruCache<SealedStep, ()>,
    followers: Vec<mpsc::Sender<Item>>,
    touched: Instant,
}

#[derive(Debug)]
struct Held {
    text: OpenText,
    touched: Instant,
}

impl Conversation {
    pub(super) fn new(options: &StreamOptions, now: Instant) -> Self {
        let max_remembered = NonZeroUsize::new(options.max_remembered).unwrap_or(NonZeroUsize::MIN);
        Self {
            open: BTreeMap::new(),
            // Most conversations have few agent executions, so no map takes its whole size from the start.
            fences: LruCache::sparse(max_remembered),
            sealed: LruCache::sparse(max_remembered),
            followers: Vec::new(),
            touched: now,
        }
    }

    pub(super) fn touched(&self) -> Instant {
        self.touched
    }

    pub(super) fn is_followed(&self) -> bool {
        self.followers.iter().any(|follower| !follower.is_closed())
    }

    /// Marks the conversation as used, and forgets texts without a write for `ttl`.
    pub(super) fn touch(&mut self, ttl: Duration, now: Instant) {
        self.touched = now;
        self.open
            .retain(|_, held| now.duration_since(held.touched) < ttl);
    }

    /// Forgets texts and followers that expired. Returns false when the whole conversation has expired.
    pub(super) fn expire(&mut self, ttl: Duration, now: Instant) -> bool {
        self.open
            .retain(|_, held| now.duration_since(held.touched) < ttl);
        self.followers.retain(|follower| !follower.is_closed());
        !self.followers.is_empty() || now.duration_since(self.touched) < ttl
    }

    pub(super) fn publish(
        &mut self,
        piece: Piece,
        options: &StreamOptions,
        now: Instant,
    ) -> Published {
        if self.is_sealed(&piece.key)
            || piece.generation < self.newest_generation(&piece.key.agent_execution_id)
        {
            return Published::Refused;
        }
        if self.has_shown_more_than(&piece) {
            return Published::Behind;
        }
        self.raise_fence(&piece);
        self.begin_anew(&piece, now);
        if piece.offset.saturating_add(piece.text.len()) > MAX_TEXT_BYTES {
            return Published::Refused;
        }
        let item = if piece.offset == 0 {
            let text = OpenText {
                message_id: piece.message_id,
                key: piece.key.clone(),
                generation: piece.generation,
                text: piece.text,
                is_ended: piece.is_end,
            };
            self.open.insert(
                piece.key,
                Held {
                    text: text.clone(),
                    touched: now,
                },
            );
            self.forget_surplus(options.max_open_texts);
            Item::Start(text)
        } else {
            let Some(held) = self
                .open
                .get_mut(&piece.key)
                .filter(|held| held.text.generation == piece.generation)
                .filter(|held| held.text.text.len() == piece.offset)
            else {
                return Published::Gap;
            };
            held.text.text.push_str(&piece.text);
            held.text.is_ended |= piece.is_end;
            held.touched = now;
            Item::Delta(Piece {
                continues: false,
                ..piece
            })
        };
        self.send(&item);
        Published::Accepted
    }

    pub(super) fn announce(&mut self, announcement: Announcement) {
        for sealed in &announcement.sealed {
            self.open.retain(|key, _| !is_of_step(key, sealed));
            self.sealed.put(sealed.clone(), ());
        }
        self.send(&Item::Announced(announcement));
    }

    /// Sends a notice to the followers.
    pub(super) fn notify(&mut self, notice: Notice) {
        self.send(&Item::Notice(notice));
    }

    /// Adds a follower. Returns `None` when the conversation has too many followers.
    pub(super) fn follow(&mut self, options: &StreamOptions) -> Option<Following> {
        self.followers.retain(|follower| !follower.is_closed());
        if self.followers.len() >= options.max_followers {
            return None;
        }
        let (sender, items) = mpsc::channel(options.follower_buffer.max(1));
        self.followers.push(sender);
        let open = self.open.values().map(|held| held.text.clone()).collect();
        Some(Following { open, items })
    }

    fn is_sealed(&self, key: &TextKey) -> bool {
        self.sealed
            .iter()
            .any(|(sealed, ())| is_of_step(key, sealed))
    }

    /// Returns the newest known generation of an agent execution: from its fence, or from its open texts if the fence
    /// was forgotten.
    fn newest_generation(&self, agent_execution: &str) -> u32 {
        let fence = self.fences.peek(agent_execution).copied();
        let open = self
            .open
            .iter()
            .filter(|(key, _)| key.agent_execution_id == agent_execution);
        open.map(|(_, held)| held.text.generation)
            .chain(fence)
            .max()
            .unwrap_or(0)
    }

    fn raise_fence(&mut self, piece: &Piece) {
        let agent_execution = &piece.key.agent_execution_id;
        if let Some(generation) = self.fences.get_mut(agent_execution) {
            *generation = piece.generation;
        } else {
            self.fences.put(agent_execution.clone(), piece.generation);
        }
    }

    /// Returns true when the piece begins a continuation and is shorter than the text of the older generation.
    fn has_shown_more_than(&self, piece: &Piece) -> bool {
        let shown = self.open.get(&piece.key).map(|held| &held.text);
        piece.continues
            && piece.offset == 0
            && shown.is_some_and(|shown| {
                shown.generation < piece.generation && shown.text.len() > piece.text.len()
            })
    }

    /// Empties every text of the step with an older generation. This includes the other part: when a retry begins
    /// with reasoning, the answer of the first try must not stay on the readers' screens.
    fn begin_anew(&mut self, piece: &Piece, now: Instant) {
        if piece.continues {
            return;
        }
        let mut emptied = Vec::new();
        for (key, held) in &mut self.open {
            let is_same_step = key.agent_execution_id == piece.key.agent_execution_id
                && key.step == piece.key.step;
            if is_same_step && held.text.generation < piece.generation {
                held.text.generation = piece.generation;
                held.text.message_id.clone_from(&piece.message_id);
                held.text.text.clear();
                held.text.is_ended = false;
                held.touched = now;
                // A piece at offset 0 starts its text itself.
                if *key != piece.key || piece.offset > 0 {
                    emptied.push(Item::Start(held.text.clone()));
                }
            }
        }
        for item in emptied {
            self.send(&item);
        }
    }

    fn forget_surplus(&mut self, limit: usize) {
        while self.open.len() > limit.max(1) {
            let oldest = self
                .open
                .iter()
                .min_by_key(|(_, held)| held.touched)
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.open.remove(&oldest);
            }
        }
    }

    /// Gives the item to every follower. A follower with a full buffer is cut, because the stream never waits.
    fn send(&mut self, item: &Item) {
        self.followers
            .retain(|follower| follower.try_send(item.clone()).is_ok());
    }
}

/// Returns true when the text belongs to the step.
fn is_of_step(key: &TextKey, step: &SealedStep) -> bool {
    key.agent_execution_id == step.agent_execution_id && key.step == step.step
}
