//! `find_tools`: finds the agent's tools for which a request to the model has no room.
//!
//! No agent lists the tool: it is offered when the agent has more tools than the provider takes. The next request offers
//! the found tools. Pure: the activity that runs the tool knows the agent and its tools.

use std::collections::BTreeMap;

use everturn_proto::{
    turn::AgentTool,
    words::{Effect, FIND_TOOLS_TOOL},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{context::ToolContext, error::ToolError, names, tool::ToolSpec, typed::TypedTool};

/// The name of the tool.
pub const NAME: &str = FIND_TOOLS_TOOL;
/// The time limit of a call. The first answer of a source of tools may take some seconds.
const TIMEOUT_MS: u32 = 60_000;
/// The most found tools, and the number without a wish of the model. The schemas of the tools are part of the next
/// request.
const MAX_FOUND: usize = 20;
const USUAL_FOUND: usize = 8;
/// The most characters of a description in an answer. The next request has the whole description.
const MAX_DESCRIPTION_CHARS: usize = 300;
/// The most words of a query.
const MAX_WORDS: usize = 32;
/// The shortest word that may be the beginning of a word in a name.
const MIN_BEGINNING_CHARS: usize = 4;
/// The most groups in an answer without a found tool.
const MAX_GROUPS: usize = 50;

/// The tool `find_tools`.
pub struct FindTools;

/// The arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Words about the task, or names of tools: "create a calendar event", "github issues".
    pub query: String,
    /// How many tools to load at the most; 8 when left out, and 20 at the most.
    pub max_tools: Option<u32>,
}

/// The found tools.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Found {
    /// The tools, the best first. The stored answer decides which tools the next requests offer.
    pub tools: Vec<FoundTool>,
    /// How many further tools fit the query.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
    /// Without a found tool: the groups of tools that the agent has, with their numbers of tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, usize>,
}

/// A found tool.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct FoundTool {
    /// The name with which the model calls the tool.
    pub name: String,
    /// The beginning of the description.
    #[serde(default)]
    description: String,
}

/// A stored answer.
#[derive(Deserialize)]
struct Stored {
    tools: Vec<FoundTool>,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Returns the names of the tools in a stored answer. An answer in another form has none.
pub fn names_in(answer: &everturn_proto::Json) -> Vec<String> {
    let stored = answer.decode::<Stored>();
    let tools = stored.map(|stored| stored.tools).unwrap_or_default();
    tools
        .into_iter()
        .map(|tool| tool.name)
        .take(MAX_FOUND)
        .collect()
}

/// Returns the tools that fit the query. A rare word counts more than a frequent word, and a word in a name more than a
/// word in a description.
pub fn found(tools: &[ToolSpec], input: &Input) -> Found {
    let indexed: Vec<Indexed<'_>> = tools.iter().map(Indexed::of).collect();
    let words: Vec<String> = words(&input.query).into_iter().take(MAX_WORDS).collect();
    let mut sums = vec![0.0_f64; tools.len()];
    for word in &words {
        let fits: Vec<f64> = indexed.iter().map(|tool| tool.fit(word)).collect();
        let count = fits.iter().filter(|fit| **fit > 0.0).count();
        let weight = rarity(tools.len(), count);
        for (sum, fit) in sums.iter_mut().zip(fits) {
            *sum += fit * weight;
        }
    }
    let query = input.query.to_lowercase();
    let named = query.split(|c: char| c.is_whitespace() || matches!(c, ',' | '`' | '"'));
    let named: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
    for (sum, tool) in sums.iter_mut().zip(&indexed) {
        if named.contains(&tool.name.as_str()) {
            *sum += 1000.0;
        }
    }
    let mut ranked: Vec<(usize, f64)> = sums
        .into_iter()
        .enumerate()
        .filter(|(_, sum)| *sum > 0.0)
        .collect();
    // Tools with equal sums stay in the agent's order.
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    let wish = input.max_tools.map_or(USUAL_FOUND, |most| {
        usize::try_from(most).unwrap_or(MAX_FOUND)
    });
    let most = wish.clamp(1, MAX_FOUND);
    let best = ranked
        .iter()
        .take(most)
        .map(|(index, _)| shown(&tools[*index]));
    Found {
        tools: best.collect(),
        more: ranked.len().saturating_sub(most),
        groups: if ranked.is_empty() {
            groups(tools)
        } else {
            BTreeMap::new()
        },
    }
}

/// Returns the weight of a word that `count` of all tools have.
fn rarity(all: usize, count: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    (1.0 + number(all) / number(count.max(1))).ln()
}

fn shown(tool: &ToolSpec) -> FoundTool {
    FoundTool {
        name: tool.name.clone(),
        description: tool
            .description
            .chars()
            .take(MAX_DESCRIPTION_CHARS)
            .collect(),
    }
}

/// Returns the numbers of tools by their sources.
fn groups(tools: &[ToolSpec]) -> BTreeMap<String, usize> {
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools {
        let source = names::source_of(&tool.name).unwrap_or(&tool.name);
        if groups.len() < MAX_GROUPS || groups.contains_key(source) {
            *groups.entry(source.to_owned()).or_default() += 1;
        }
    }
    groups
}

/// A tool with the words of its name and description.
struct Indexed<'a> {
    name: String,
    name_words: Vec<String>,
    description: String,
    description_words: Vec<String>,
    title: &'a str,
}

impl<'a> Indexed<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        Self {
            name: tool.name.to_lowercase(),
            name_words: words(&tool.name),
            description: tool.description.to_lowercase(),
            description_words: words(&tool.description),
            title: tool.title.as_deref().unwrap_or_default(),
        }
    }

    fn fit(&self, word: &str) -> f64 {
        let is = |own: &String| is_form_of(own, word);
        if self.name_words.iter().any(|own| own == word) {
            4.0
        } else if self.name_words.iter().any(is) {
            3.0
        } else if self.title.to_lowercase().contains(word) {
            2.0
        } else if self
            .description_words
            .iter()
            .any(|own| own == word || is(own))
        {
            1.0
        } else if !word.is_ascii() && self.description.contains(word) {
            // Some scripts have no spaces between words.
            1.0
        } else {
            0.0
        }
    }
}

/// True for two forms of one word, like `issue` and `issues`.
fn is_form_of(own: &str, word: &str) -> bool {
    let (shorter, longer) = if own.len() < word.len() {
        (own, word)
    } else {
        (word, own)
    };
    shorter.chars().count() >= MIN_BEGINNING_CHARS && longer.starts_with(shorter)
}

/// Returns the words of a text in small letters: `getIssueComments` has three.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut was_small) = (String::new(), false);
    for c in text.chars().chain([' ']) {
        let begins = c.is_uppercase() && was_small;
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            let next = std::mem::take(&mut word).to_lowercase();
            if !words.contains(&next) {
                words.push(next);
            }
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
        was_small = c.is_lowercase() || c.is_ascii_digit();
    }
    words
}

impl TypedTool for FindTools {
    type Input = Input;
    type Output = Found;
    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "You have more tools than are listed. This tool searches their names and \
        descriptions and loads the best matches: you can call them in your next step. Search before you say that you \
        cannot do something.";
    const TITLE: Option<&'static str> = Some("Find tools: {query}");
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, _context: ToolContext, _input: Input) -> Result<Found, ToolError> {
        Err(ToolError::Failed(
            "The tool finds the tools of an agent, and runs only in an agent's turn.".to_owned(),
        ))
    }
}

/// Returns the settings of the tool. They are fixed, because no agent lists the tool.
pub fn settings() -> AgentTool {
    AgentTool {
        name: NAME.to_owned(),
        timeout_ms: TIMEOUT_MS,
        ..AgentTool::default()
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::Json;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object"}),
            title: None,
            effect: Effect::Read,
            is_inline: false,
        }
    }

    fn names(tools: &[ToolSpec], query: &str) -> Vec<String> {
        let input = Input {
            query: query.to_owned(),
            max_tools: None,
        };
        found(tools, &input)
            .tools
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    }

    fn office() -> Vec<ToolSpec> {
        let mut tools: Vec<ToolSpec> = (0..100)
            .map(|number| {
                tool(
                    &format!("crm__get_record_{number}"),
                    "Gets a record of the customer data base",
                )
            })
            .collect();
        tools.push(tool(
            "calendar__createEvent",
            "Creates an event in the calendar of a person",
        ));
        tools.push(tool(
            "github__list_issues",
            "Lists the issues of a repository",
        ));
        tools.push(tool("github__create_issue", "Creates an issue"));
        tools.push(tool("wetter__abfrage", "Sagt das Wetter. 查询天气预报"));
        tools
    }

    #[test]
    fn rare_words_and_names_count_more() {
        let tools = office();
        assert_eq!(
            names(&tools, "please get an event into the calendar")[0],
            "calendar__createEvent"
        );
        assert_eq!(names(&tools, "create issue")[0], "github__create_issue");
        assert_eq!(names(&tools, "list github issue")[0], "github__list_issues");
        assert_eq!(names(&tools, "天气")[0], "wetter__abfrage");
        assert_eq!(names(&tools, "crm__get_record_77")[0], "crm__get_record_77");
    }

    #[test]
    fn answers_are_bounded_and_tell_what_else_there_is() {
        let tools = office();
        let input = |query: &str, most| Input {
            query: query.to_owned(),
            max_tools: most,
        };
        let many = found(&tools, &input("record", Some(1000)));
        assert_eq!((many.tools.len(), many.more), (MAX_FOUND, 80));
        assert_eq!(
            found(&tools, &input("record", None)).tools.len(),
            USUAL_FOUND
        );
        let none = found(&tools, &input("xyzzy", None));
        assert!(none.tools.is_empty());
        assert_eq!((none.groups["crm"], none.groups["github"]), (100, 2));
        let answer = Json::of(&many);
        assert_eq!(names_in(&answer).len(), MAX_FOUND);
        assert!(names_in(&Json::of(&"an error")).is_empty());
    }

    proptest! {
        #[test]
        fn any_query_gets_a_bounded_answer(query in "\\PC{0,200}", most in any::<Option<u32>>()) {
            let found = found(&office(), &Input { query, max_tools: most });
            prop_assert!(found.tools.len() <= MAX_FOUND && Json::of(&found).as_str().len() < 16 * 1024);
        }
    }
}
