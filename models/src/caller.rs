//! The facts about the caller of a turn that a provider gets: fields of the request's body, and headers.
//!
//! The operator writes texts with placeholders in the provider's table. The facts come from the store, so a request can
//! only have facts of its own conversation.

use std::{collections::BTreeMap, fmt::Write as _};

use everturn_proto::ids;

/// The most characters of a filled text. OpenAI accepts no longer value in `metadata`.
pub(crate) const MAX_CHARS: usize = 512;

/// The facts about the caller of a turn, from the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The tenant.
    pub tenant_id: String,
    /// The owner of the conversation, if any.
    pub owner_id: Option<String>,
    /// The conversation's name, unique in the tenant.
    pub conversation_id: String,
    /// The message that began the turn.
    pub message_id: String,
    /// The calling agent.
    pub agent: String,
    /// The metadata of the conversation.
    pub metadata: BTreeMap<String, String>,
}

impl Caller {
    /// Returns the value of a placeholder; `None` for a missing owner or a missing key of the metadata.
    fn value(&self, placeholder: &Placeholder) -> Option<String> {
        let tenant = self.tenant_id.as_str();
        let owner = self.owner_id.as_deref();
        match placeholder {
            Placeholder::Tenant => Some(tenant.to_owned()),
            Placeholder::Owner => owner.map(str::to_owned),
            Placeholder::Conversation => Some(self.conversation_id.clone()),
            Placeholder::Message => Some(self.message_id.clone()),
            Placeholder::Agent => Some(self.agent.clone()),
            Placeholder::TenantHash => Some(ids::caller_hash(&["tenant", tenant])),
            Placeholder::OwnerHash => {
                owner.map(|owner| ids::caller_hash(&["owner", tenant, owner]))
            }
            Placeholder::ConversationHash => Some(ids::caller_hash(&[
                "conversation",
                tenant,
                &self.conversation_id,
            ])),
            Placeholder::Metadata(key) => self.metadata.get(key).cloned(),
        }
    }
}

/// A fact about the caller in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Placeholder {
    Tenant,
    Owner,
    Conversation,
    Message,
    Agent,
    TenantHash,
    OwnerHash,
    ConversationHash,
    Metadata(String),
}

impl Placeholder {
    /// The words of the placeholders without a key.
    const WORDS: [(&str, Self); 8] = [
        ("tenant_id", Self::Tenant),
        ("owner_id", Self::Owner),
        ("conversation_id", Self::Conversation),
        ("message_id", Self::Message),
        ("agent", Self::Agent),
        ("tenant_hash", Self::TenantHash),
        ("owner_hash", Self::OwnerHash),
        ("conversation_hash", Self::ConversationHash),
    ];

    fn read(word: &str) -> Option<Self> {
        if let Some(key) = word.strip_prefix("metadata.") {
            return (!key.is_empty()).then(|| Self::Metadata(key.to_owned()));
        }
        let known = Self::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, placeholder)| placeholder.clone())
    }
}

/// A text with placeholders, like `plan:{metadata.plan}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerText(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    Fact(Placeholder),
}

impl CallerText {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// The text has an unknown placeholder, or a brace without its pair. The error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (fixed, braced) = rest.split_at(at);
            let word = braced.strip_prefix('{');
            let Some((word, after)) = word.and_then(|word| word.split_once('}')) else {
                return Err("a brace has no pair".to_owned());
            };
            let Some(placeholder) = Placeholder::read(word) else {
                let known = Placeholder::WORDS.map(|(word, _)| format!("{{{word}}}"));
                return Err(format!(
                    "`{{{word}}}` is no placeholder; the placeholders are {} and {{metadata.KEY}}",
                    known.join(", ")
                ));
            };
            pieces.push(Piece::Fixed(fixed.to_owned()));
            pieces.push(Piece::Fact(placeholder));
            rest = after;
        }
        pieces.push(Piece::Fixed(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Returns the text with the caller's facts; `None` when the caller lacks a fact.
    pub(crate) fn filled(&self, caller: &Caller) -> Option<String> {
        let piece = |piece: &Piece| match piece {
            Piece::Fixed(text) => Some(text.clone()),
            Piece::Fact(placeholder) => caller.value(placeholder),
        };
        let text: String = self.0.iter().map(piece).collect::<Option<_>>()?;
        Some(text.chars().take(MAX_CHARS).collect())
    }
}

/// The facts about callers that a provider gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerFields {
    /// The field for the user of the application: `user` of OpenAI, `metadata.user_id` of Anthropic.
    pub user: Option<CallerText>,
    /// The fields of the body's `metadata`, by name.
    pub metadata: BTreeMap<String, CallerText>,
    /// The texts of `metadata.tags`.
    pub tags: Vec<CallerText>,
    /// Headers, by name.
    pub headers: BTreeMap<String, CallerText>,
}

impl CallerFields {
    /// Returns the headers of a request. Characters that a header cannot have are percent-encoded.
    pub(crate) fn headers_of(&self, caller: &Caller) -> impl Iterator<Item = (&str, String)> {
        self.headers.iter().filter_map(|(name, text)| {
            let text = text.filled(caller)?;
            Some((name.as_str(), encoded(&text)))
        })
    }
}

/// Returns the text with each byte outside of printable ASCII percent-encoded.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded.trim().to_owned()
}
