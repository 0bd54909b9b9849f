//! Names of keys and channels. They have the conversation's log in them and not its id: nobody who knows of a
//! conversation that was removed can read the texts of the next one with its id. The log is in braces, so that all keys
//! of a conversation are in one hash slot of a cluster.

use std::fmt::Write;

use everturn_proto::LogId;

use crate::{
    api::{Part, TextKey},
    shared_counts::Counted,
};

/// Version of what is stored and sent. A release that changes either of them raises it. During an upgrade, old and new
/// processes then do not see each other's texts, but they see every event.
const FORMAT: u32 = 2;

/// The names of all conversations of one installation.
#[derive(Debug, Clone)]
pub(super) struct Names {
    before: String,
    /// The beginning of counts.
    counts: String,
    /// The channel on which cancels are announced, of all conversations.
    pub cancels: String,
}

/// The names of one conversation.
#[derive(Debug)]
pub(super) struct ConversationNames {
    /// Its channel.
    pub channel: String,
}

impl Names {
    pub(super) fn new(prefix: &str, installation: &str) -> Self {
        Self {
            before: format!("{prefix}:{FORMAT}:{{"),
            counts: format!("{prefix}:{FORMAT}:{}:{{", hexadecimal(installation)),
            cancels: format!("{prefix}:{FORMAT}:cancels"),
        }
    }

    pub(super) fn of(&self, log: &LogId) -> ConversationNames {
        ConversationNames {
            channel: format!("{}{log}}}", self.before),
        }
    }

    /// String: when a limit of requests has everything back.
    pub(super) fn requests(&self, of: &Counted) -> String {
        self.count("requests", of)
    }

    /// Hash: the streams that each gateway has open.
    pub(super) fn streams(&self, of: &Counted) -> String {
        self.count("streams", of)
    }

    /// The key of a count. Those of a tenant are in one hash slot. Ids are written in hexadecimal, so that no id ends the
    /// braces or looks like a log.
    fn count(&self, what: &str, of: &Counted) -> String {
        let tenant = hexadecimal(&of.tenant_id);
        let owner = of.owner_id.as_deref().map(hexadecimal);
        let owner = owner.map_or_else(String::new, |owner| format!(":{owner}"));
        format!("{}{tenant}}}:{what}{owner}", self.counts)
    }

    /// The log of a channel.
    pub(super) fn log(&self, channel: &str) -> Option<LogId> {
        let log = channel.strip_prefix(self.before.as_str())?;
        log.strip_suffix('}').map(LogId::from)
    }
}

impl ConversationNames {
    /// Hash: for each open text its entry; `#epoch` and `#number`, the place.
    pub(super) fn open(&self) -> String {
        format!("{}:open", self.channel)
    }

    /// Hash: the newest generation of an agent execution and its last sealed step.
    pub(super) fn mark(&self, agent_execution_id: &str) -> String {
        format!("{}:run:{agent_execution_id}", self.channel)
    }

    /// The beginning of the keys of texts.
    pub(super) fn text_prefix(&self) -> String {
        format!("{}:text:", self.channel)
    }

    /// String: a text so far.
    pub(super) fn text(&self, field: &str) -> String {
        format!("{}:text:{field}", self.channel)
    }
}

fn hexadecimal(id: &str) -> String {
    id.bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The name of a text in the hash of open texts.
pub(super) fn field(agent_execution_id: &str, step: u32, part: Part) -> String {
    let part = match part {
        Part::Text => 't',
        Part::Reasoning => 'r',
    };
    format!("{step}/{part}/{agent_execution_id}")
}

/// The text of a name.
pub(super) fn parse_field(field: &str) -> Option<TextKey> {
    let mut words = field.splitn(3, '/');
    let step = words.next()?.parse().ok()?;
    let part = match words.next()? {
        "t" => Part::Text,
        "r" => Part::Reasoning,
        _ => return None,
    };
    Some(TextKey {
        agent_execution_id: words.next()?.to_owned(),
        step,
        part,
    })
}

/// The part of a step that a piece is not for.
pub(super) fn other(part: Part) -> Part {
    match part {
        Part::Text => Part::Reasoning,
        Part::Reasoning => Part::Text,
    }
}
