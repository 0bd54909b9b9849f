//! Facts about Anthropic's models, as data in one table.
//!
//! A name contains a family and a version, in either order and with other words around them: `claude-3-5-haiku-20241022`,
//! `us.anthropic.claude-opus-4-6-v1:0`, `claude-sonnet-4.5`.

use crate::parameters::ReasoningEffort;

/// The facts about a family of models, from a version on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    family: &'static str,
    /// The first version with these facts. `(0, 0)` includes names without a version.
    from: (u32, u32),
    /// The most tokens of a reply. A request must name a limit.
    pub(super) max_tokens: u32,
    /// The way to ask for thinking.
    pub(super) thinking: Thinking,
    /// True when the model thinks unless a request forbids it.
    pub(super) thinks_by_default: bool,
    /// The efforts above `high` that the model takes.
    pub(super) top_efforts: &'static [ReasoningEffort],
}

/// The way to ask a model for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// By a budget of tokens.
    Budget,
    /// By an effort alone.
    Effort,
    /// By an effort, beside the permission to think as long as the model wants.
    Adaptive,
}

const XHIGH_AND_MAX: &[ReasoningEffort] = &[ReasoningEffort::XHigh, ReasoningEffort::Max];
const MAX: &[ReasoningEffort] = &[ReasoningEffort::Max];

/// The table. A family's newer versions stand above its older versions.
const TABLE: &[Facts] = &[
    // Thinking cannot be turned off, and a request that forbids thinking is refused.
    of("fable", (0, 0), 128_000).adaptive(XHIGH_AND_MAX),
    of("mythos", (0, 0), 128_000).adaptive(XHIGH_AND_MAX),
    of("opus", (5, 0), 128_000)
        .adaptive(XHIGH_AND_MAX)
        .by_default(),
    of("opus", (4, 8), 128_000).adaptive(XHIGH_AND_MAX),
    of("opus", (4, 7), 64_000).adaptive(XHIGH_AND_MAX),
    of("opus", (4, 6), 64_000).adaptive(MAX),
    of("opus", (4, 5), 64_000).effort(),
    of("opus", (4, 0), 32_000),
    of("opus", (3, 0), 4_096),
    of("sonnet", (5, 0), 64_000)
        .adaptive(XHIGH_AND_MAX)
        .by_default(),
    of("sonnet", (4, 6), 64_000).adaptive(MAX),
    of("sonnet", (3, 7), 64_000),
    of("sonnet", (3, 5), 8_192),
    of("sonnet", (3, 0), 4_096),
    of("haiku", (5, 0), 128_000)
        .adaptive(XHIGH_AND_MAX)
        .by_default(),
    of("haiku", (4, 0), 64_000),
    of("haiku", (3, 5), 8_192),
    of("haiku", (3, 0), 4_096),
];

/// The facts about every other name.
const UNKNOWN: Facts = of("", (0, 0), 64_000);

/// Returns the facts about models that get a budget for their thinking.
const fn of(family: &'static str, from: (u32, u32), max_tokens: u32) -> Facts {
    Facts {
        family,
        from,
        max_tokens,
        thinking: Thinking::Budget,
        thinks_by_default: false,
        top_efforts: &[],
    }
}

impl Facts {
    const fn effort(self) -> Self {
        Self {
            thinking: Thinking::Effort,
            ..self
        }
    }

    const fn adaptive(self, top_efforts: &'static [ReasoningEffort]) -> Self {
        Self {
            thinking: Thinking::Adaptive,
            top_efforts,
            ..self
        }
    }

    const fn by_default(self) -> Self {
        Self {
            thinks_by_default: true,
            ..self
        }
    }

    /// Returns the facts about a model.
    pub(super) fn about(model: &str) -> &'static Self {
        let name = model.to_ascii_lowercase();
        let words: Vec<&str> = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let is_family = |word: &&str| TABLE.iter().any(|row| row.family == *word);
        let Some(at) = words.iter().position(is_family) else {
            return &UNKNOWN;
        };
        let version = version(&words, at).unwrap_or_default();
        TABLE
            .iter()
            .find(|row| row.family == words[at] && row.from <= version)
            .unwrap_or(&UNKNOWN)
    }

    /// True when the provider refuses calls without the thoughts that led to them, while the model thinks within a
    /// budget. Compatible servers with other models take every call.
    pub(super) fn needs_thoughts(&self) -> bool {
        self.thinking == Thinking::Budget && *self != UNKNOWN
    }
}

/// Returns the version after the family, else the version before the family.
fn version(words: &[&str], family: usize) -> Option<(u32, u32)> {
    let is_number =
        |word: &&&str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let (before, after) = (&words[..family], &words[family + 1..]);
    let mut numbers: Vec<&&str> = after.iter().take_while(is_number).take(2).collect();
    if numbers.is_empty() {
        numbers = before.iter().rev().take_while(is_number).take(2).collect();
        numbers.reverse();
    }
    let mut numbers = numbers.into_iter().map(|number| number.parse().ok());
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_and_version_are_found_in_every_form_of_a_name() {
        for (model, family, from) in [
            ("claude-opus-4-20250514", "opus", (4, 0)),
            ("claude-opus-4-1-20250805", "opus", (4, 0)),
            ("anthropic.claude-opus-4-6-v1:0", "opus", (4, 6)),
            ("anthropic/claude-opus-4.8", "opus", (4, 8)),
            ("claude-opus-5", "opus", (5, 0)),
            ("claude-opus-6-1", "opus", (5, 0)),
            ("Claude-Sonnet-4-5@20250929", "sonnet", (3, 7)),
            ("claude-sonnet-5", "sonnet", (5, 0)),
            ("claude-3-7-sonnet-latest", "sonnet", (3, 7)),
            ("claude-3-5-haiku-20241022", "haiku", (3, 5)),
            ("claude-haiku-4-5", "haiku", (4, 0)),
            ("claude-3-opus-20240229", "opus", (3, 0)),
            ("claude-mythos-preview", "mythos", (0, 0)),
            ("claude-fable-5", "fable", (0, 0)),
            ("claude-opus-latest", "", (0, 0)),
            ("claude-2.1", "", (0, 0)),
            ("glm-4.6", "", (0, 0)),
            ("", "", (0, 0)),
        ] {
            let facts = Facts::about(model);
            assert_eq!((facts.family, facts.from), (family, from), "{model}");
        }
        assert_eq!(Facts::about("glm-4.6").max_tokens, 64_000);
        assert!(!Facts::about("glm-4.6").needs_thoughts());
    }
}
