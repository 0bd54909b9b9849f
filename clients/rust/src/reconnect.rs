//! Decides a client's next step after a connection has ended. The rules are those of
//! `clients/transcripts/connection.json`.

use std::time::Duration;

/// The wait before the gateway has set a wait, in milliseconds. The first `retry:` of a stream comes with its first
/// frame.
pub const RETRY_MS: u64 = 1000;

/// The longest wait that a client chooses itself, in milliseconds. A gateway may ask for a longer wait.
const MAX_WAIT_MS: u64 = 30_000;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The connection was cut, or could not be opened.
    Cut,
    /// The gateway gave another answer than a stream.
    Status {
        /// The HTTP status.
        status: u16,
        /// The header `Retry-After`, unparsed.
        retry_after: Option<String>,
    },
    /// A frame `reconnect` came: the gateway stops, and sets the time of the reconnect.
    Reconnect {
        /// `delay_ms` of the frame.
        delay_ms: u64,
    },
    /// A frame `end` came: the stream is over for good.
    End,
}

/// The client's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Wait for the given time, then connect again with the cursor.
    Wait(Duration),
    /// The stream is over.
    Ended,
    /// The gateway would give the same answer again.
    Refused,
}

/// Decides the next step after a connection. `failures` counts the connections in a row without a frame, including the
/// current connection. `retry_ms` is the last `retry:` of the stream, or [`RETRY_MS`] before the first. `random` is a
/// number from 0 to below 1, which spreads the reconnects of clients that were cut together.
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

/// Returns true for a status that a repeated request would get again. A request that was too late, too early or too
/// frequent may succeed later.
fn is_final(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 425 | 429)
}

/// Returns the seconds of a `Retry-After`; 0 for a date or a missing header.
fn whole_seconds(retry_after: Option<&str>) -> u64 {
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = retry_after.map(str::trim).filter(digits);
    seconds.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Doubles the wait with every failure up to a limit, and returns a random value between half of the wait and the full
/// wait.
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
