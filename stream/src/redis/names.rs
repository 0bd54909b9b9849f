//! Names of keys and channels. The names contain the conversation's log instead of the id. Therefore a reader of a
//! removed conversation cannot read the texts of a new conversation with the old id. The log is in braces, because a
//! cluster must keep the keys of a conversation in one hash slot.

use everturn_proto::LogId;

use crate::{
    api::{Part, TextKey},
    shared_counts::Counted,
};

/// The version of the stored and sent formats. A release that changes a format raises the version. During an upgrade,
/// old and new processes do not exchange texts, but still see every event.
const FORMAT: u32 = 3;

/// The names for the conversations of an installation.
#[derive(Debug, Clone)]
pub(super) struct Names {
    before: String,
    /// The prefix of counts.
    counts: String,
    /// The channel for cancels of all conversations.
    pub cancels: String,
}

/// The names of one conversation.
#[derive(Debug)]
pub(super) struct ConversationNames {
    /// The conversation's channel.
    pub channel: String,
}

impl Names {
    pub(super) fn new(prefix: &str, installation: &str) -> Self {
        Self {
            before: format!("{prefix}:{FORMAT}:{{"),
            counts: format!("{prefix}:{FORMAT}:{}:{{", hex::encode(installation)),
            cancels: format!("{prefix}:{FORMAT}:cancels"),
        }
    }

    pub(super) fn of(&self, log: &LogId) -> ConversationNames {
        ConversationNames {
            channel: format!("{}{log}}}", self.before),
        }
    }

    /// Returns the key of a string: the time at which a request limit has fully recovered.
    pub(super) fn requests(&self, of: &Counted) -> String {
        self.count("requests", of)
    }

    /// Returns the key of a hash: the number of open streams per gateway.
    pub(super) fn streams(&self, of: &Counted) -> String {
        self.count("streams", of)
    }

    /// Returns the key of a count. The counts of a tenant are in one hash slot. Ids are in hexadecimal, so that no id
    /// can close the braces or look like a log.
    fn count(&self, what: &str, of: &Counted) -> String {
        let tenant = hex::encode(&of.tenant_id);
        let owner = of.owner_id.as_deref().map(hex::encode);
        let owner = owner.map_or_else(String::new, |owner| format!(":{owner}"));
        format!("{}{tenant}}}:{what}{owner}", self.counts)
    }

    /// Returns the log of a channel.
    pub(super) fn log(&self, channel: &str) -> Option<LogId> {
        let log = channel.strip_prefix(self.before.as_str())?;
        log.strip_suffix('}').map(LogId::from)
    }
}

impl ConversationNames {
    /// Returns the key of a hash: an entry per open text, and the position in `#epoch` and `#number`.
    pub(super) fn open(&self) -> String {
        format!("{}:open", self.channel)
    }

    /// Returns the key of a hash: the newest generation of an agent execution and its last sealed step.
    pub(super) fn mark(&self, agent_execution_id: &str) -> String {
        format!("{}:run:{agent_execution_id}", self.channel)
    }

    /// Returns the prefix of the keys of texts.
    pub(super) fn text_prefix(&self) -> String {
        format!("{}:text:", self.channel)
    }

    /// Returns the key of a string: a text so far.
    pub(super) fn text(&self, field: &str) -> String {
        format!("{}:text:{field}", self.channel)
    }
}

/// Returns the name of a text in the hash of open texts.
pub(super) fn field(agent_execution_id: &str, step: u32, part: Part) -> String {
    format!("{step}/{}/{agent_execution_id}", String::from(part))
}

/// Parses the name of a text in the hash of open texts.
pub(super) fn parse_field(field: &str) -> Option<TextKey> {
    let mut words = field.splitn(3, '/');
    let step = words.next()?.parse().ok()?;
    let part = Part::try_from(words.next()?.to_owned()).ok()?;
    Some(TextKey {
        agent_execution_id: words.next()?.to_owned(),
        step,
        part,
    })
}
