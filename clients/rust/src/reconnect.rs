//! What a client does when a connection has ended. The rules are those of `clients/transcripts/connection.json`.

use std::time::Duration;

/// The wait before the gateway has said how long, in milliseconds: the first `retry:` of a stream comes with its first frame.
pub const RETRY_MS: u64 = 1000;

/// The longest wait that a client takes on itself, in milliseconds. A gateway may ask for a longer one.
const MAX_WAIT_MS: u64 = 30_000;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was cut, or there was none.
    Cut,
    /// The gateway gave another answer than a stream.
    Status {
        /// The HTTP status.
        status: u16,
        /// The header `Retry-After`, as it came.
        retry_after: Option<String>,
    },
    /// A frame `reconnect` came: the gateway stops, and says when to come back.
    Reconnect {
        /// `delay_ms` of the frame.
        delay_ms: u64,
    },
    /// A frame `end` came: there is nothing to come back for.
    End,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Wait so long, and connect again with the cursor.
    Wait(Duration),
    /// Nothing more comes.
    Ended,
    /// The gateway would give the same answer again.
    Refused,
}

/// Decides what to do after a connection. `failures` counts the connections in a row that brought no frame, this one
/// included. `retry_ms` is the last `retry:` of the stream, [`RETRY_MS`] before the first. `random` is a number from 0 to
/// below 1, so that clients that were cut together do not come back together.
pub fn next_step(outcome: &Outcome, failures: u32, retry_ms: u64, random: f64) -> Step {
    let retry_after = match outcome {
        Outcome::End => return Step::Ended,
        Outcome::Status { status, .. } if is_final(*status) => return Step::Refused,
        Outcome::Reconnect { delay_ms } => return Step::Wait(Duration::from_millis(*delay_ms)),
        Outcome::Cut if failures == 0 => return Step::Wait(Duration::from_millis(retry_ms)),
        Outcome::Cut => 0,
        Outcome::Status { retry_after, .. } => whole_seconds(retry_after.as_deref()),
    };
    let wait = backed_off(failures, retry_ms, random);
    Step::Wait(Duration::from_millis(
        wait.max(retry_after.saturating_mul(1000)),
    ))
}

/// True for a status that stays as it is. A request that came too late, too early or too often may pass another time.
fn is_final(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 425 | 429)
}

/// Of `Retry-After`, the form with seconds; 0 for any other.
fn whole_seconds(retry_after: Option<&str>) -> u64 {
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = retry_after.map(str::trim).filter(digits);
    seconds.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Doubles with each failure up to a limit, and takes from half to all of it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)] // at most MAX_WAIT_MS, and not negative
fn backed_off(failures: u32, retry_ms: u64, random: f64) -> u64 {
    let doubled = 2_u64.saturating_pow(failures.saturating_sub(1));
    let limit = retry_ms.saturating_mul(doubled).min(MAX_WAIT_MS);
    (limit as f64 * (0.5 + random / 2.0)).round() as u64
}
