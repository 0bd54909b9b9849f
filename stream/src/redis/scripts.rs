//! The Lua scripts: their arguments and answers. The rules are in the `.lua` files.

use std::sync::LazyLock;

use everturn_proto::{SealedStep, limits::MAX_TEXT_BYTES};
use redis::{Script, ScriptInvocation};

use super::{
    error::Error,
    known::Mark,
    names::{ConversationNames, Names, field, parse_field},
    options::RedisStreamOptions,
    wire::{self, Position},
};
use crate::api::{Announcement, Notice, OpenText, Piece, Published};

static PUBLISH: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("scripts/tell.lua"),
        include_str!("scripts/publish.lua")
    ))
});
static ANNOUNCE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("scripts/tell.lua"),
        include_str!("scripts/announce.lua")
    ))
});
static SNAPSHOT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/snapshot.lua")));

static FORGET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/forget.lua")));

static ANNOUNCE_CANCEL: LazyLock<Script> =
    LazyLock::new(|| Script::new("return redis.call('PUBLISH', ARGV[1], ARGV[2])"));

/// Fences, appends and publishes a piece. `known` is this process's mark of the agent execution.
pub(super) fn publish(
    names: &ConversationNames,
    piece: &Piece,
    known: Mark,
    options: &RedisStreamOptions,
) -> ScriptInvocation<'static> {
    let key = &piece.key;
    let this = field(&key.agent_execution_id, key.step, key.part);
    let mut script = PUBLISH.prepare_invoke();
    script
        .key(names.open())
        .key(names.mark(&key.agent_execution_id))
        .key(names.text(&this));
    script
        .arg(&names.channel)
        .arg(&piece.text)
        .arg(wire::piece_header(piece));
    script
        .arg(wire::emptied_header(piece))
        .arg(wire::PART_OF_EMPTIED)
        .arg(this)
        .arg(&piece.message_id)
        .arg(&key.agent_execution_id);
    script
        .arg(piece.generation)
        .arg(key.step)
        .arg(piece.offset)
        .arg(u8::from(piece.is_end));
    script
        .arg(known.generation)
        .arg(known.sealed.map_or(-1, i64::from));
    script
        .arg(millis(options.text_ttl))
        .arg(millis(options.fence_ttl.max(options.text_ttl)));
    script
        .arg(MAX_TEXT_BYTES)
        .arg(options.max_open_texts.max(1))
        .arg(names.text_prefix())
        .arg(u8::from(piece.continues));
    script
}

/// Seals texts and announces saved events to readers.
pub(super) fn announce(
    names: &ConversationNames,
    news: &Announcement,
    options: &RedisStreamOptions,
) -> ScriptInvocation<'static> {
    let mut script = announcing(names, wire::news_header(news), options);
    for SealedStep {
        agent_execution_id: agent_execution,
        step,
    } in &news.sealed
    {
        script.key(names.mark(agent_execution));
        script.arg(*step).arg(agent_execution);
    }
    script
}

/// Sends a notice to readers.
pub(super) fn notify(
    names: &ConversationNames,
    notice: Notice,
    options: &RedisStreamOptions,
) -> ScriptInvocation<'static> {
    announcing(names, wire::notice_header(notice), options)
}

/// Sends the header of a message to readers.
fn announcing(
    names: &ConversationNames,
    header: String,
    options: &RedisStreamOptions,
) -> ScriptInvocation<'static> {
    let mut script = ANNOUNCE.prepare_invoke();
    script.key(names.open());
    script
        .arg(&names.channel)
        .arg(header)
        .arg(millis(options.sealed_ttl))
        .arg(names.text_prefix());
    script
}

/// Reads the open texts.
pub(super) fn snapshot(names: &ConversationNames) -> ScriptInvocation<'static> {
    let mut script = SNAPSHOT.prepare_invoke();
    script.key(names.open()).arg(names.text_prefix());
    script
}

/// Removes the open texts.
pub(super) fn forget(names: &ConversationNames) -> ScriptInvocation<'static> {
    let mut script = FORGET.prepare_invoke();
    script.key(names.open()).arg(names.text_prefix());
    script
}

/// Announces a cancelled agent execution to workers.
pub(super) fn announce_cancel(
    names: &Names,
    agent_execution_id: &str,
) -> ScriptInvocation<'static> {
    let mut script = ANNOUNCE_CANCEL.prepare_invoke();
    script.arg(&names.cancels).arg(agent_execution_id);
    script
}

/// The open texts of a conversation, and the position of the last message that they contain.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub position: Position,
    pub open: Vec<OpenText>,
}

/// The answer of the snapshot script: epoch, number, and the name, entry and content of every text.
pub(super) type RawSnapshot = (u64, u64, Vec<(String, String, String)>);

impl TryFrom<RawSnapshot> for Snapshot {
    type Error = Error;

    fn try_from((epoch, number, open): RawSnapshot) -> Result<Self, Error> {
        let open = open
            .into_iter()
            .map(|(name, entry, text)| open_text(&name, &entry, text).ok_or(Error::Odd));
        let mut open: Vec<OpenText> = open.collect::<Result<_, _>>()?;
        open.sort_by(|one, two| one.key.cmp(&two.key));
        Ok(Self {
            position: Position { epoch, number },
            open,
        })
    }
}

/// Parses an entry of the form `<generation>/<1 once ended>/<number>/<message id>`.
fn open_text(name: &str, entry: &str, text: String) -> Option<OpenText> {
    let mut words = entry.splitn(4, '/');
    let generation = words.next()?.parse().ok()?;
    let is_ended = words.next()? == "1";
    let message_id = words.nth(1)?.to_owned();
    Some(OpenText {
        message_id,
        key: parse_field(name)?,
        generation,
        text,
        is_ended,
    })
}

/// Parses the answer of the publish script.
pub(super) fn published(answer: &str) -> Result<Published, Error> {
    match answer {
        "accepted" => Ok(Published::Accepted),
        "refused" => Ok(Published::Refused),
        "gap" => Ok(Published::Gap),
        "behind" => Ok(Published::Behind),
        _ => Err(Error::Odd),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    // PEXPIRE 0 would delete the key.
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 50)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whoever can write to Redis can leave anything there.
        #[test]
        fn any_snapshot_is_read_or_refused(
            name in "[0-9]{0,12}/(text|call_[0-9]|x)?/?\\PC{0,8}", entry in "[0-9]{0,12}/?[01x]?/?\\PC{0,12}", text in any::<String>(),
            answer in "accepted|refused|gap|behind|\\PC{0,8}",
        ) {
            let snapshot = Snapshot::try_from((1, 2, vec![(name.clone(), entry.clone(), text.clone())]));
            if let Ok(snapshot) = snapshot {
                let open = &snapshot.open[0];
                let key = &open.key;
                let number: u32 = name.split('/').next().unwrap_or_default().parse().unwrap_or_default();
                prop_assert_eq!((key.step, &open.text), (number, &text), "{} {}", name, entry);
                prop_assert_eq!(parse_field(&field(&key.agent_execution_id, key.step, key.part)), Some(key.clone()));
            }
            let _ = published(&answer);
        }
    }
}
