//! `calculate`: exact arithmetic with fend.
//!
//! fend is a whole language. Only arithmetic is passed to fend, because other features can loop without checking the
//! interrupt (lambdas, bit shifts), need randomness (dice) or parse in exponential time (deep nesting). fend runs on
//! a separate thread, because it is not async, may use much stack, and must not end the worker by a bug.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use everturn_proto::words::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{context::ToolContext, error::ToolError, typed::TypedTool};

/// The time limit of an expression.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// The time that fend may need to notice its interrupt, because it first finishes a multiplication.
const GRACE: Duration = Duration::from_millis(500);
const MAX_EXPRESSION_BYTES: usize = 500;
/// The limit on nesting, because fend's parser reads `1(1(1(…` twice per level.
const MAX_NESTING: usize = 12;
/// The most digits of a result, for example of a factorial, that a model can use.
const MAX_RESULT_CHARS: usize = 4000;
/// The most parallel calculations. A calculation that ignores the interrupt keeps a slot until the end.
const MAX_PARALLEL: usize = 16;
/// The stack size. fend recurses, and 500 bytes of expression need well under 32 MiB, even without optimisation.
const STACK_BYTES: usize = 32 * 1024 * 1024;
/// The characters of arithmetic beside letters, digits and white space. Left out on purpose: `:` `=` `\` (lambdas,
/// variables), `<` `>` `&` `|` (bits), `"` `'` (strings), `;` `@` `#` (statements, dates, bases).
const PUNCTUATION: &str = "+-*/^!%().,_×÷−·√πτ°²³";

/// The tool `calculate`.
pub struct Calculate {
    slots: Arc<Semaphore>,
}

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// For example: 21 * 2, (1 + 1/3)^2, sqrt(2), 15% of 80, 5 km to miles, 20!
    #[schemars(length(min = 1, max = MAX_EXPRESSION_BYTES))]
    expression: String,
}

/// The original expression and its value.
#[derive(Serialize)]
pub struct Output {
    expression: String,
    value: String,
}

impl Default for Calculate {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(MAX_PARALLEL)),
        }
    }
}

impl TypedTool for Calculate {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "calculate";
    const DESCRIPTION: &'static str = "Calculates an arithmetic expression exactly. Knows + - * / ^ ! %, \
                                       parentheses, functions (sqrt, ln, log10, sin, …), constants (pi, e) and units.";
    const TITLE: Option<&'static str> = Some("Calculate {expression}");
    const EFFECT: Effect = Effect::Read;
    const INLINE: bool = true;

    async fn run(&self, _: ToolContext, input: Input) -> Result<Output, ToolError> {
        let Input { expression } = input;
        let arithmetic = check(&expression).map_err(ToolError::Failed)?;
        let slot = tokio::time::timeout(TIME_LIMIT, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            return Err(ToolError::Failed(
                "Too many calculations are running; try again later.".into(),
            ));
        };
        let value = evaluate(arithmetic, slot)
            .await
            .map_err(ToolError::Failed)?;
        if value.chars().count() > MAX_RESULT_CHARS {
            return Err(ToolError::Failed(format!(
                "The result has more than {MAX_RESULT_CHARS} digits; ask for an approximation or a logarithm of it."
            )));
        }
        Ok(Output { expression, value })
    }
}

/// Returns the expression for fend, or the reason for a refusal.
fn check(expression: &str) -> Result<String, String> {
    // Models like to end with a question: `21 * 2 = ?`.
    let trimmed = expression.trim().trim_end_matches(['=', '?', ' ']);
    if trimmed.is_empty() {
        return Err("The expression is empty.".into());
    }
    if trimmed.len() > MAX_EXPRESSION_BYTES {
        return Err(format!(
            "The expression is longer than {MAX_EXPRESSION_BYTES} bytes."
        ));
    }
    let odd = |c: &char| {
        !(c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || PUNCTUATION.contains(*c))
    };
    if let Some(odd) = trimmed.chars().find(odd) {
        return Err(format!(
            "`{odd}` is not part of an arithmetic expression; use numbers, + - * / ^ and functions."
        ));
    }
    let mut depth = 0_usize;
    for c in trimmed.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("A `)` has no `(` before it.")?,
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(format!(
                "The parentheses are nested more than {MAX_NESTING} deep."
            ));
        }
    }
    if depth > 0 {
        return Err("A `(` has no `)` after it.".into());
    }
    for word in trimmed.split(|c: char| !c.is_ascii_alphanumeric()) {
        if is_chance(word) {
            return Err(format!(
                "`{word}` needs chance, and this tool only does arithmetic."
            ));
        }
    }
    Ok(trimmed.replace('·', "*").replace('√', " sqrt "))
}

/// Returns true for dice (`d6`, `2d20`) and for functions that draw from dice. Dice are also large: `d4000000000`
/// lists every face.
fn is_chance(word: &str) -> bool {
    let dice = word
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .strip_prefix('d');
    matches!(
        word.to_ascii_lowercase().as_str(),
        "roll" | "sample" | "rand" | "random"
    ) || dice.is_some_and(|faces| faces.starts_with(|c: char| c.is_ascii_digit()))
}

/// Runs fend on a thread, and waits for the result within the time limit.
async fn evaluate(expression: String, slot: OwnedSemaphorePermit) -> Result<String, String> {
    let stop = Arc::new(AtomicBool::new(false));
    // A dropped future, which means a cancelled tool, also stops the thread.
    let _stop_when_dropped = StopWhenDropped(Arc::clone(&stop));
    let (sender, receiver) = oneshot::channel();
    let calculation = move || {
        let interrupt = Deadline {
            at: Instant::now() + TIME_LIMIT,
            stop,
        };
        let result = fend_core::evaluate_with_interrupt(
            &expression,
            &mut fend_core::Context::new(),
            &interrupt,
        );
        // An error means that no receiver waits any more.
        let _ = sender.send(result.map(|result| result.get_main_result().to_owned()));
        drop(slot);
    };
    let thread = thread::Builder::new()
        .name("calculate".into())
        .stack_size(STACK_BYTES)
        .spawn(calculation);
    if thread.is_err() {
        return Err("The calculation could not be started; try again later.".into());
    }
    match tokio::time::timeout(TIME_LIMIT + GRACE, receiver).await {
        Ok(Ok(Ok(value))) if value.is_empty() => Err("The expression has no value.".into()),
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(reason))) if reason == "interrupted" => Err(too_long()),
        Ok(Ok(Err(reason))) => Err(format!(
            "The expression cannot be calculated: {}.",
            cut(&reason)
        )),
        // fend panicked and its thread ended, because of a bug in fend.
        Ok(Err(_)) => Err("The expression cannot be calculated.".into()),
        Err(_) => Err(too_long()),
    }
}

fn too_long() -> String {
    "The calculation takes too long; make it smaller.".into()
}

/// Cuts an error message, because fend quotes values, which can be long.
fn cut(reason: &str) -> String {
    reason.trim_end_matches('.').chars().take(300).collect()
}

struct Deadline {
    at: Instant,
    stop: Arc<AtomicBool>,
}

impl fend_core::Interrupt for Deadline {
    fn should_interrupt(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.at
    }
}

struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::context;

    async fn calculate(expression: &str) -> Result<String, String> {
        let input = Input {
            expression: expression.to_owned(),
        };
        let output = Calculate::default().run(context(), input).await;
        let output = output.map_err(|error| error.to_string())?;
        assert_eq!(output.expression, expression);
        Ok(output.value)
    }

    #[tokio::test]
    async fn arithmetic_is_exact() {
        for (expression, value) in [
            ("21 * 2", "42"),
            ("21 × 2 = ?", "42"),
            ("2·3", "6"),
            ("0.1 + 0.2", "0.3"),
            ("2^64", "18446744073709551616"),
            ("1,000 * 3", "3000"),
            ("15% of 80", "12"),
            ("7 mod 4", "3"),
            ("2(3 + 4)", "14"),
            ("√16", "4"),
            ("10 km / 2", "5 km"),
            ("20!", "2432902008176640000"),
            ("-3 - -5", "2"),
        ] {
            assert_eq!(
                calculate(expression).await.as_deref(),
                Ok(value),
                "{expression}"
            );
        }
    }

    #[tokio::test]
    async fn errors_can_be_read_by_a_model() {
        for (expression, part) in [
            ("1 / 0", "division by zero"),
            ("2 +", "cannot be calculated"),
            ("foo + 1", "foo"),
            ("", "empty"),
            ("=", "empty"),
            ("1)", "no `(`"),
            ("(1", "no `)`"),
            ("d6", "chance"),
            ("roll 6", "chance"),
            ("2 d4000000000", "chance"),
            ("(\\x. x x)(\\x. x x)", "not part of"),
            ("1 << 99999999999", "not part of"),
            ("a = 5", "not part of"),
        ] {
            let message = calculate(expression).await.unwrap_err();
            assert!(message.contains(part), "{expression}: {message}");
        }
    }

    #[tokio::test]
    async fn nothing_takes_long_or_grows_large() {
        let nested = format!("{}1{}", "1(".repeat(MAX_NESTING), ")".repeat(MAX_NESTING));
        let chain = format!("{}1", "-".repeat(MAX_EXPRESSION_BYTES - 1));
        let powers = format!("{}1", "1^".repeat(MAX_EXPRESSION_BYTES / 2 - 1));
        let mixed = "1 m ".repeat(MAX_EXPRESSION_BYTES / 4);
        let deep = format!("{}1", "(".repeat(100));
        let long = "1+".repeat(MAX_EXPRESSION_BYTES);
        for expression in [
            "9^9^9^9",
            "10^10^10",
            "99999999!",
            "1000!!!",
            "2^99999",
            &nested,
            &chain,
            &powers,
            &mixed,
            &deep,
            &long,
        ] {
            let start = Instant::now();
            let result = calculate(expression).await;
            assert!(
                start.elapsed() < TIME_LIMIT + GRACE * 2,
                "{expression} took {:?}",
                start.elapsed()
            );
            assert!(result.unwrap_or_default().len() <= MAX_RESULT_CHARS * 4);
        }
    }

    fn run(expression: &str) -> Result<String, String> {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(calculate(expression))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_string_gives_a_value_or_an_error(expression in "\\PC{0,60}") {
            let _ = run(&expression);
        }

        #[test]
        fn anything_like_arithmetic_gives_a_value_or_an_error(
            expression in "([0-9]{1,3}|[-+*/^!%(),. ]|sqrt|sin|mod|of|km|to|pi|²|°){1,25}"
        ) {
            let _ = run(&expression);
        }

        #[test]
        fn sums_are_right(a in 0_u64..1 << 60, b in 0_u64..1 << 60) {
            prop_assert_eq!(run(&format!("{a} + {b}")), Ok((a + b).to_string()));
        }
    }
}
