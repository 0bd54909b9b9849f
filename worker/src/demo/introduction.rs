//! The answer to a message without a request: who answers, with which instructions, and what to ask for.

use super::{
    own_tools::own,
    said::{cut, first_sentence},
    wire::Request,
};

const WHO: &str = "I am Everturn's demo model: a set of rules, not a language model.";
/// What to ask for, and the tool that the request must offer.
const HINTS: [(&str, &str); 3] = [
    ("calculate", "to calculate (“What is 21 * 2?”)"),
    ("current_time", "for the time (“What time is it in Tokyo?”)"),
    (
        "work_plan",
        "for a plan (“Plan a picnic: buy bread, find a meadow”)",
    ),
];
const BY_NAME: &str =
    "name a tool and its arguments (“call calculate {\"expression\": \"1 + 1\"}”)";
/// The most tools that a help names.
const MAX_NAMED: usize = 8;

/// Returns the name of the demo model, and examples of requests. With instructions, their first sentence comes first.
pub(super) fn of(request: &Request) -> String {
    let instructions = request.instructions();
    let instructions = match first_sentence(&instructions) {
        "" => String::new(),
        first => format!("My instructions begin: “{}” ", cut(first)),
    };
    let mut hints = HINTS
        .iter()
        .filter(|(tool, _)| request.offers(tool))
        .map(|(_, hint)| *hint);
    let hints = match (hints.next(), hints.collect::<Vec<_>>()) {
        (None, _) => format!("You can {BY_NAME}."),
        (Some(hint), others) if others.is_empty() => format!("Ask me {hint}, or {BY_NAME}."),
        (Some(hint), others) => {
            let hints = [&[hint], &others[..]].concat().join(", ");
            format!("Ask me {hints}, several of these at once, or {BY_NAME}.")
        }
    };
    let own = named(request);
    format!("{instructions}{WHO} {hints}{own}")
}

/// Names the agent's own tools, a sentence for all; empty without own tools.
pub(super) fn named(request: &Request) -> String {
    let tools: Vec<_> = own(request)
        .take(MAX_NAMED)
        .map(
            |tool| match first_sentence(&tool.description).trim_end_matches('.') {
                "" => format!("`{}`", tool.name),
                purpose => format!("`{}` ({purpose})", tool.name),
            },
        )
        .collect();
    if tools.is_empty() {
        return String::new();
    }
    let tools = tools.join(", ");
    format!(
        " I also call {tools}: use words of the name or of the description, and write the arguments."
    )
}
