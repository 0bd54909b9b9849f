//! A reader's position in an event log: the sequence number of the reader's last event, and the event's save time.
//!
//! The number alone does not identify the log. After a failover with lost commits, other events get equal numbers. A
//! conversation that was removed and made anew has equal numbers, too. The save times of the events differ.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use everturn_proto::event::Event;
use serde::Deserialize;

/// The `id:` of an event's frame, and a reader's `Last-Event-ID`. The text form is `50-19a8f3c2b10`: the sequence
/// number, and the milliseconds since 1970 in hexadecimal. A plain sequence number is also a cursor, without a save
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Cursor {
    /// The sequence number of the reader's last event; 0 before the first event.
    pub sequence: u32,
    /// The save time of the last event, in milliseconds since 1970; `None` if the reader sends no time.
    pub saved_ms: Option<i64>,
}

impl Cursor {
    /// Makes a cursor without the save time of the last event.
    pub fn at(sequence: u32) -> Self {
        Self {
            sequence,
            saved_ms: None,
        }
    }

    /// Makes the cursor of a reader with the events up to and including `event`.
    pub fn behind(event: &Event) -> Self {
        let saved = DateTime::parse_from_rfc3339(&event.created_at);
        Self {
            sequence: event.sequence_number,
            saved_ms: saved.ok().map(|saved| saved.timestamp_millis()),
        }
    }

    /// Returns true when `event` may be the reader's last event.
    pub(super) fn fits(self, event: &Event) -> bool {
        let stored = Self::behind(event);
        stored.sequence == self.sequence
            && (self.saved_ms.is_none() || self.saved_ms == stored.saved_ms)
    }

    /// Returns the end of the millisecond in which the store saved the reader's last event.
    pub(super) fn saved_by(self) -> Option<DateTime<Utc>> {
        const LAST_MICROSECOND: i64 = 999;
        let micros = self.saved_ms?.checked_mul(1000)?;
        DateTime::from_timestamp_micros(micros.checked_add(LAST_MICROSECOND)?)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.saved_ms {
            Some(saved_ms) => write!(formatter, "{}-{saved_ms:x}", self.sequence),
            None => write!(formatter, "{}", self.sequence),
        }
    }
}

impl FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a cursor must be the `id` or the sequence number of an event".to_owned();
        let (sequence, saved) = match text.split_once('-') {
            Some((sequence, saved)) => (sequence, Some(saved)),
            None => (text, None),
        };
        // Signs are refused, although Rust's parser reads signs. A negative number leads to times that no database
        // knows.
        if text.starts_with('+') || saved.is_some_and(|saved| saved.starts_with(['+', '-'])) {
            return Err(wrong());
        }
        let saved_ms = saved.map(|saved| i64::from_str_radix(saved, 16));
        Ok(Self {
            sequence: sequence.parse().map_err(|_| wrong())?,
            saved_ms: saved_ms.transpose().map_err(|_| wrong())?,
        })
    }
}

impl TryFrom<String> for Cursor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let event = Event {
            sequence_number: 50,
            created_at: "2026-11-22T10:00:00.123Z".into(),
            ..Event::default()
        };
        let cursor = Cursor::behind(&event);
        let text = cursor.to_string();
        assert!(text.starts_with("50-"), "{text}");
        assert_eq!(text.parse::<Cursor>().unwrap(), cursor);
        assert!(cursor.fits(&event) && Cursor::at(50).fits(&event));
        let later = Event {
            created_at: "2026-11-22T10:00:00.124Z".into(),
            ..event
        };
        assert!(!cursor.fits(&later) && !Cursor::at(49).fits(&later));
        let saved_by = cursor.saved_by().unwrap().to_rfc3339();
        assert_eq!(saved_by, "2026-11-22T10:00:00.123999+00:00");
    }

    #[test]
    fn a_plain_number_is_a_cursor_and_other_text_is_not() {
        assert_eq!("7".parse::<Cursor>().unwrap(), Cursor::at(7));
        for wrong in [
            "",
            "-",
            "x",
            "7-",
            "7-xyz",
            "-7",
            "4294967296",
            "7-1-1",
            "7 ",
            "+7",
            "7-+1",
            "7--1cdda4faccd0000",
        ] {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
        for largest in ["999999999-fffffffffffffff", "4294967295"] {
            assert!(largest.parse::<Cursor>().is_ok(), "{largest}");
        }
        let extreme: Cursor = "1-7fffffffffffffff".parse().unwrap();
        assert_eq!(extreme.saved_by(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_is_refused(text in "\\PC{0,30}", like in "[0-9a-fA-F+-]{0,24}") {
            for text in [text, like] {
                let Ok(cursor) = text.parse::<Cursor>() else { continue };
                prop_assert_eq!(cursor.to_string().parse::<Cursor>(), Ok(cursor), "{}", text);
                let saved_by = cursor.saved_by();
                prop_assert!(saved_by.is_none_or(|at| at >= DateTime::UNIX_EPOCH), "{}: {:?}", text, saved_by);
            }
        }
    }
}
