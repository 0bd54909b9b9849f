//! The messages on a conversation's channel: `<epoch> <number> <header, JSON>\n<text>`.
//!
//! The text is outside the JSON, so a script can send stored text without a second encoding.

use everturn_proto::SealedStep;
use serde::{Deserialize, Serialize};

use crate::api::{Announcement, Item, Notice, OpenText, Part, Piece, TextKey};

/// The position of a message among the messages of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The time at which counting began, in microseconds; 0 before the first message.
    pub epoch: u64,
    /// The number of the message, from 1 without gaps.
    pub number: u64,
}

/// The order of two positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The message is the next one.
    Next,
    /// The message is known already.
    Known,
    /// Messages in between are missing.
    Gap,
}

impl Position {
    /// Compares the position `next` with this position. A connection loses no message, so the first message of a
    /// later epoch is always the next one: the position had expired, or Redis was flushed.
    pub(super) fn order(self, next: Self) -> Order {
        if next.epoch == self.epoch {
            match next.number {
                number if number <= self.number => Order::Known,
                number if self.number.checked_add(1) == Some(number) => Order::Next,
                _ => Order::Gap,
            }
        } else if next.epoch > self.epoch && next.number == 1 {
            Order::Next
        } else {
            Order::Gap
        }
    }
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub position: Position,
    pub item: Item,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Header {
    Piece {
        message_id: String,
        #[serde(flatten)]
        key: TextKey,
        generation: u32,
        offset: usize,
        is_end: bool,
    },
    News {
        last_sequence: u32,
        /// Pairs of an agent execution and a step.
        sealed: Vec<(String, u32)>,
    },
    Notice(Notice),
}

impl Header {
    fn encode(&self) -> String {
        // Numbers, strings and booleans always encode.
        serde_json::to_string(self).unwrap_or_default()
    }
}

pub(super) fn piece_header(piece: &Piece) -> String {
    let (message_id, key) = (piece.message_id.clone(), piece.key.clone());
    let Piece {
        generation,
        offset,
        is_end,
        ..
    } = *piece;
    Header::Piece {
        message_id,
        key,
        generation,
        offset,
        is_end,
    }
    .encode()
}

/// The part in [`emptied_header`], in place of which a script writes the word of the emptied part.
pub(super) const PART_OF_EMPTIED: &str = "\"part\":\"text\"";

/// Encodes the header of the message that empties a text of the piece's step. The header has the part
/// [`PART_OF_EMPTIED`].
pub(super) fn emptied_header(piece: &Piece) -> String {
    let key = TextKey {
        part: Part::Text,
        ..piece.key.clone()
    };
    let (message_id, generation) = (piece.message_id.clone(), piece.generation);
    Header::Piece {
        message_id,
        key,
        generation,
        offset: 0,
        is_end: false,
    }
    .encode()
}

/// Encodes the header of an announcement.
pub(super) fn news_header(news: &Announcement) -> String {
    Header::News {
        last_sequence: news.last_sequence,
        sealed: news.sealed.iter().map(to_wire).collect(),
    }
    .encode()
}

/// Encodes the header of a notice.
pub(super) fn notice_header(notice: Notice) -> String {
    Header::Notice(notice).encode()
}

fn to_wire(sealed: &SealedStep) -> (String, u32) {
    (sealed.agent_execution_id.clone(), sealed.step)
}

fn from_wire((agent_execution_id, step): (String, u32)) -> SealedStep {
    SealedStep {
        agent_execution_id,
        step,
    }
}

/// Parses a message. Returns `None` for a message with a foreign format.
pub(super) fn parse(message: &[u8]) -> Option<Message> {
    let message = std::str::from_utf8(message).ok()?;
    let (head, text) = message.split_once('\n')?;
    let mut words = head.splitn(3, ' ');
    let position = Position {
        epoch: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
    };
    let item = match serde_json::from_str(words.next()?).ok()? {
        Header::Piece {
            message_id,
            key,
            generation,
            offset: 0,
            is_end,
        } => Item::Start(OpenText {
            message_id,
            key,
            generation,
            text: text.to_owned(),
            is_ended: is_end,
        }),
        Header::Piece {
            message_id,
            key,
            generation,
            offset,
            is_end,
        } => Item::Delta(Piece {
            message_id,
            key,
            generation,
            offset,
            text: text.to_owned(),
            is_end,
            continues: false,
        }),
        Header::News {
            last_sequence,
            sealed,
        } => Item::Announced(Announcement {
            last_sequence,
            sealed: sealed.into_iter().map(from_wire).collect(),
        }),
        Header::Notice(notice) => Item::Notice(notice),
    };
    Some(Message { position, item })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::{ModelWait, ToolProgress};

    #[test]
    fn what_is_sent_is_received() {
        let key = TextKey {
            agent_execution_id: "run/1 \n".to_owned(),
            step: 3,
            part: Part::Reasoning,
        };
        let text = "a \n b\r\n€ \u{0}".to_owned();
        let piece = Piece {
            message_id: "m".to_owned(),
            key,
            generation: 2,
            offset: 7,
            text,
            is_end: true,
            continues: false,
        };
        let sent =
            |header: &str, text: &str| parse(format!("17 4 {header}\n{text}").as_bytes()).unwrap();
        let received = sent(&piece_header(&piece), &piece.text);
        assert_eq!(
            received.position,
            Position {
                epoch: 17,
                number: 4
            }
        );
        assert_eq!(received.item, Item::Delta(piece.clone()));
        let Item::Start(emptied) = sent(&emptied_header(&piece), "").item else {
            panic!("no start")
        };
        assert_eq!(
            (emptied.key.part, emptied.generation, emptied.text.as_str()),
            (Part::Text, 2, "")
        );
        assert!(emptied_header(&piece).contains(PART_OF_EMPTIED));
        let news = Announcement {
            last_sequence: 9,
            sealed: vec![SealedStep {
                agent_execution_id: "run".to_owned(),
                step: 0,
            }],
        };
        assert_eq!(sent(&news_header(&news), "").item, Item::Announced(news));
        let wait = ModelWait {
            message_id: "m".to_owned(),
            agent_execution_id: "run/1 \n".to_owned(),
            step: 3,
            code: "llm_overloaded".to_owned(),
            message: "The provider has too much to do.".to_owned(),
            attempt: 4,
            retry_after_ms: 12_000,
        };
        let progress = ToolProgress {
            message_id: "m".to_owned(),
            agent_execution_id: "run".to_owned(),
            execution_id: "exec".to_owned(),
            tool_name: "copy".to_owned(),
            progress: Some(3.into()),
            total: None,
            message: "copying \n".to_owned(),
            level: Some("info".to_owned()),
        };
        for notice in [Notice::ModelWaits(wait), Notice::ToolWorks(progress)] {
            let received = sent(&notice_header(notice.clone()), "").item;
            assert_eq!(received, Item::Notice(notice));
        }
    }

    #[test]
    fn anything_else_is_not_received() {
        for odd in [
            "",
            "1 2",
            "1 2 {}\n",
            "x 2 {\"kind\":\"news\",\"last_sequence\":1,\"sealed\":[]}\n",
            "1 2 \n",
        ] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(parse(&[0xff, 0xfe]), None);
    }

    #[test]
    fn positions_follow_one_another() {
        let at = |epoch, number| Position { epoch, number };
        assert_eq!(at(5, 7).order(at(5, 8)), Order::Next);
        assert_eq!(at(5, 7).order(at(5, 7)), Order::Known);
        assert_eq!(at(5, 7).order(at(5, 9)), Order::Gap);
        assert_eq!(at(5, 7).order(at(6, 1)), Order::Next, "flushed");
        assert_eq!(at(5, 7).order(at(6, 2)), Order::Gap);
        assert_eq!(
            at(5, 7).order(at(4, 1)),
            Order::Gap,
            "a clock that went back"
        );
        assert_eq!(Position::default().order(at(6, 1)), Order::Next);
        assert_eq!(Position::default().order(at(6, 2)), Order::Gap);
    }

    #[test]
    fn a_position_at_the_end_of_all_numbers_has_no_next_one() {
        let last = Position {
            epoch: 5,
            number: u64::MAX,
        };
        for number in [0, 1, u64::MAX] {
            let next = Position { epoch: 5, number };
            assert_eq!(last.order(next), Order::Known, "{number}");
        }
    }

    proptest! {
        /// Whoever can write to Redis can send anything.
        #[test]
        fn any_message_is_received_or_left_out(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            numbers in prop::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 5),
            kind in "piece|news|[a-z]{0,5}",
            part in "text|reasoning|[a-z]{0,5}",
            text in any::<String>(),
        ) {
            let _ = parse(&bytes);
            let [epoch, number, generation, offset, step] = numbers[..] else { unreachable!() };
            let header = serde_json::json!({
                "kind": kind, "message_id": text, "agent_execution_id": text, "step": step, "part": part,
                "generation": generation, "offset": offset, "is_end": true, "last_sequence": step, "sealed": [[text, step]],
            });
            let sent = format!("{epoch} {number} {header}\n{text}");
            if let Some(message) = parse(sent.as_bytes()) {
                prop_assert_eq!(message.position, Position { epoch, number });
                let known = Position { epoch: generation, number: offset };
                let orders = (known.order(message.position), message.position.order(known));
                prop_assert!(orders != (Order::Next, Order::Next), "{:?}", message.position);
            }
        }
    }
}
