//! Finds arithmetic in a message.

/// Expressions of one message that are calculated.
const MAX_EXPRESSIONS: usize = 5;
const FUNCTIONS: [&str; 8] = ["sqrt", "sin", "cos", "tan", "ln", "log10", "log2", "abs"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// `+ - * / ^` and their words.
    Operator,
    Function,
    Open,
    Close,
    /// `!` and `%`.
    Suffix,
    /// Everything else; it ends an expression.
    Other,
}

#[derive(Debug, Clone)]
struct Token {
    kind: Kind,
    text: String,
    /// White space stands before it.
    is_apart: bool,
}

/// The expressions of a message, in its order, each once.
pub(super) fn find(message: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut run = Vec::new();
    for token in tokens(message).into_iter().chain([other()]) {
        if ends(&run, &token) {
            let expression = expression(std::mem::take(&mut run));
            found.extend(expression.filter(|text| !found.contains(text)));
        }
        if token.kind != Kind::Other {
            run.push(token);
        }
    }
    found.truncate(MAX_EXPRESSIONS);
    found
}

fn other() -> Token {
    Token {
        kind: Kind::Other,
        text: String::new(),
        is_apart: true,
    }
}

/// True when `next` cannot go on with the expression so far.
fn ends(run: &[Token], next: &Token) -> bool {
    use Kind::{Close, Function, Number, Open, Operator, Other, Suffix};
    let Some(last) = run.last() else { return false };
    match (last.kind, next.kind) {
        (_, Other)
        | (Number | Close | Suffix, Number)
        | (Open | Operator, Close | Suffix)
        | (Function, Suffix) => true,
        // `2(3 + 4)` is a product; `at 5 (2 + 3)` is not. `sqrt` wants its parenthesis.
        (Number | Close | Suffix, Open | Function) => next.is_apart,
        (Function, next) => next != Open,
        (Operator, Operator) => next.text != "-",
        _ => false,
    }
}

/// The expression of a run of tokens, without what hangs over its ends.
fn expression(mut run: Vec<Token>) -> Option<String> {
    let hangs_over_end =
        |token: &Token| matches!(token.kind, Kind::Operator | Kind::Open | Kind::Function);
    while run.last().is_some_and(hangs_over_end) {
        run.pop();
    }
    loop {
        let count = |kind: Kind| run.iter().filter(|token| token.kind == kind).count();
        let (opened, closed) = (count(Kind::Open), count(Kind::Close));
        let first = run.first()?;
        let is_sign = first.text == "-"
            && run
                .get(1)
                .is_some_and(|next| next.kind == Kind::Number && !next.is_apart);
        let is_stray = matches!(first.kind, Kind::Close | Kind::Suffix)
            || (first.kind == Kind::Operator && !is_sign);
        if is_stray || (first.kind == Kind::Open && opened > closed) {
            run.remove(0);
        } else if closed > opened && run.last().is_some_and(|last| last.kind == Kind::Close) {
            run.pop();
        } else if opened == closed {
            break;
        } else {
            return None;
        }
    }
    let numbers = run
        .iter()
        .filter(|token| token.kind == Kind::Number)
        .count();
    let works = run.iter().skip(1).any(|token| token.kind == Kind::Operator);
    let is_function = run
        .iter()
        .any(|token| token.kind == Kind::Function || token.text == "!");
    let is_arithmetic = numbers > 0 && ((works && numbers > 1) || is_function) && !is_date(&run);
    is_arithmetic.then(|| write(&run))
}

/// `2026-07-31`, `31/7/2026`.
fn is_date(run: &[Token]) -> bool {
    let [first, a, _, b, last] = run else {
        return false;
    };
    let is_year = |token: &Token| {
        token.text.len() == 4 && token.text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_tight = run.iter().skip(1).all(|token| !token.is_apart);
    is_tight
        && a.text == b.text
        && matches!(a.text.as_str(), "-" | "/")
        && (is_year(first) || is_year(last))
}

/// As it was written, with single spaces.
fn write(run: &[Token]) -> String {
    let mut text = String::new();
    for token in run {
        if token.is_apart && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}

fn tokens(message: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = message;
    let mut is_apart = true;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            is_apart = true;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let follows_percent = tokens.last().is_some_and(|token| token.text == "%");
        let (kind, text, length) = token(rest, follows_percent);
        tokens.push(Token {
            kind,
            text,
            is_apart,
        });
        rest = &rest[length..];
        is_apart = false;
    }
    tokens
}

/// The token at the beginning of `rest`, and its length there.
fn token(rest: &str, follows_percent: bool) -> (Kind, String, usize) {
    let c = rest.chars().next().unwrap_or_default();
    if c.is_alphanumeric() || c == '_' {
        return word(rest, follows_percent);
    }
    let after = &rest[c.len_utf8()..];
    let (kind, text) = match c {
        '+' | '-' | '*' | '/' | '^' => (Kind::Operator, c.to_string()),
        '×' | '·' => (Kind::Operator, "*".to_owned()),
        '÷' => (Kind::Operator, "/".to_owned()),
        '−' => (Kind::Operator, "-".to_owned()),
        '(' => (Kind::Open, "(".to_owned()),
        ')' => (Kind::Close, ")".to_owned()),
        '%' => (Kind::Suffix, "%".to_owned()),
        // At the end of a sentence it is an exclamation.
        '!' if after.trim_start().starts_with(|c: char| !c.is_alphabetic()) => {
            (Kind::Suffix, "!".to_owned())
        }
        _ => (Kind::Other, String::new()),
    };
    (kind, text, c.len_utf8())
}

fn word(rest: &str, follows_percent: bool) -> (Kind, String, usize) {
    let number = number_length(rest);
    if number > 0 {
        let is_word = rest[number..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if !is_word {
            return (Kind::Number, rest[..number].replace(',', ""), number);
        }
    }
    let length = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let lower = rest[..length].to_lowercase();
    let operator = match lower.as_str() {
        "plus" => "+",
        "minus" => "-",
        "times" | "x" => "*",
        "of" if follows_percent => "of",
        "mod" => "mod",
        "divided" if rest[length..].to_lowercase().starts_with(" by ") => {
            return (Kind::Operator, "/".into(), length + 3);
        }
        name if FUNCTIONS.contains(&name) => return (Kind::Function, lower, length),
        _ => return (Kind::Other, String::new(), length),
    };
    (Kind::Operator, operator.to_owned(), length)
}

/// Length of the number at the beginning: `1,000.5` but not the comma or the full stop behind one.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(text);
    if length == 0 {
        return 0;
    }
    while text[length..].starts_with(',') && digits(&text[length + 1..]) == 3 {
        length += 4;
    }
    if text[length..].starts_with('.') {
        let decimals = digits(&text[length + 1..]);
        length += if decimals > 0 { decimals + 1 } else { 0 };
    }
    length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arithmetic_is_found() {
        for (message, expected) in [
            (
                "What is 21 * 2, and what time is it in Tokyo?",
                &["21 * 2"][..],
            ),
            ("What is 21*2?", &["21*2"]),
            ("2+2=4 and 3 times 4.", &["2+2", "3 * 4"]),
            ("(what is (1 + 2) * 3)", &["(1 + 2) * 3"]),
            ("15% of 80, please", &["15% of 80"]),
            ("1,000.50 × 3, or 7 divided by 2", &["1000.50 * 3", "7 / 2"]),
            ("sqrt(16) + 1 and 2(3 + 4)", &["sqrt(16) + 1", "2(3 + 4)"]),
            ("What is 20!?", &["20!"]),
            ("-5 - -3", &["-5 - -3"]),
            ("at 5 (2 + 3)", &["(2 + 3)"]),
            ("6 x 7", &["6 * 7"]),
            ("2 + 2, again 2 + 2", &["2 + 2"]),
        ] {
            assert_eq!(find(message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_no_arithmetic_is_left_alone() {
        for message in [
            "",
            "hello",
            "on 2026-07-31 at 10:30",
            "31/7/2026",
            "I have 5!",
            "the 3rd of v2",
            "24 hours",
            "- 5 apples",
            "x x x",
            "+49 170",
            "a - b",
            "100%",
            "((((",
            "sqrt of 2",
        ] {
            assert_eq!(find(message), [""; 0], "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_message_can_be_read(message in "([0-9]|[-+*/^!%(),.]| |sqrt|of|divided by|\\PC){0,40}") {
            for expression in find(&message) {
                prop_assert!(expression.bytes().any(|byte| byte.is_ascii_digit()));
                prop_assert_eq!(expression.matches('(').count(), expression.matches(')').count());
            }
        }
    }
}
