//! The gate of a provider: calls over its limits wait here, and the call that was asked for first goes first.
//!
//! A waiting call holds a slot of its worker. Therefore only some calls of a provider wait at the same time, each for a
//! short time ([`WaitLimits`]). Every other call gets [`Later`], gives its slot back, and comes again. The position of a
//! call is the time at which the call was asked for first. A call keeps its position while it is away, at every worker.
//!
//! Every process has separate gates. The limits apply to the calls of its turns, and not to the HTTP attempts of one
//! call.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use everturn_telemetry::turns;
use tokio::sync::watch;

use crate::sync::{Instant, Mutex, MutexGuard, sleep_until};

const MINUTE: Duration = Duration::from_mins(1);
/// The longest time until a call comes again. Younger calls may go first while an older call is away.
const LONGEST_RETURN: Duration = MINUTE;

/// The limits of one process's calls to a provider; `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// The most calls in parallel.
    pub concurrent: Option<usize>,
    /// The most calls that begin within any minute.
    pub per_minute: Option<usize>,
    /// The most tokens, input and output, of the calls that begin within any minute.
    pub tokens_per_minute: Option<u64>,
}

/// The limits of the waiting calls of a provider, in one process. A waiting call holds a slot of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimits {
    /// The longest wait of a call before the call gives its slot back.
    pub longest: Duration,
    /// The most calls that wait at the same time. With 0, one call waits.
    pub calls: usize,
}

/// A call that asks to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The estimated tokens of the call, input and output.
    pub tokens: u64,
    /// The time at which the call was asked for first. Earlier calls go first.
    pub asked_at: SystemTime,
    /// The limits of the wait.
    pub limits: WaitLimits,
}

/// The refusal of a call that must give its slot back, and come again with its [`Arrival::asked_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limits of the provider let the call begin later")]
pub struct Later {
    /// The time until the call comes again; zero: at once, at the end of the queue for slots.
    pub after: Duration,
}

/// The gate of one provider.
pub(super) struct Gate {
    limits: CallLimits,
    shared: Arc<Shared>,
}

/// The part of a gate that its admissions share.
#[derive(Debug)]
struct Shared {
    provider: String,
    state: Mutex<State>,
    /// Tells the waiting calls that the first of them may begin, or that the last of them must leave.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of calls that run.
    running: usize,
    /// The calls of the last minute, oldest first.
    begun: VecDeque<BegunCall>,
    /// The time before which no call goes through.
    paused_until: Option<Instant>,
    /// The waiting calls of this process, in the order of their positions.
    waiting: BTreeSet<Position>,
    /// The number of calls that have asked to begin.
    arrivals: u64,
    /// The time at which the last refused call comes again.
    last_return: Option<Instant>,
}

/// The position of a waiting call: the time at which the call was asked for first, and the number of its arrival.
type Position = (SystemTime, u64);

#[derive(Debug)]
struct BegunCall {
    at: Instant,
    /// The call's tokens: an estimate at first, later the exact number; at least 1.
    tokens: u64,
    /// The number of the call's arrival.
    number: u64,
}

/// The permission to make one call. Dropping the admission ends the call for the limit of calls in parallel.
#[derive(Debug, Default)]
pub struct Admission(Option<Admitted>);

#[derive(Debug)]
struct Admitted {
    gate: Arc<Shared>,
    /// The number of the call's arrival.
    number: u64,
}

impl Admission {
    /// Replaces the estimate of the call's tokens by the real number.
    pub fn settle(&self, tokens: u64) {
        let Some(Admitted { gate, number }) = &self.0 else {
            return;
        };
        let mut state = gate.lock();
        let mut begun = state.begun.iter_mut();
        if let Some(call) = begun.rfind(|call| call.number == *number) {
            call.tokens = tokens.max(1);
        }
        drop(state);
        gate.changed.send_replace(());
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(Admitted { gate, .. }) = self.0.take() {
            gate.lock().running -= 1;
            gate.changed.send_replace(());
        }
    }
}

/// The next action of a call at the gate.
enum Step {
    Begins(Admission),
    Leaves(Later),
    /// The call waits until this time, or until the gate changes.
    Waits(Instant),
}

/// The time at which the first of the waiting calls may begin.
enum Opening {
    Now,
    NotBefore(Instant),
    /// The time is unknown: a running call must end first.
    AfterACall,
}

impl Gate {
    /// Returns the gate of the provider; `None` without limits.
    pub(super) fn new(provider: &str, limits: CallLimits) -> Option<Self> {
        (limits != CallLimits::default()).then(|| Self {
            limits,
            shared: Arc::new(Shared {
                provider: provider.to_owned(),
                state: Mutex::default(),
                changed: watch::Sender::new(()),
            }),
        })
    }

    /// Waits until the call may begin.
    ///
    /// # Errors
    ///
    /// [`Later`] when the call has waited for its longest time, or when enough older calls wait already.
    pub(super) async fn admit(&self, arrival: &Arrival) -> Result<Admission, Later> {
        let mut changed = self.shared.changed.subscribe();
        let waiting = Waiting::of(&self.shared, arrival.asked_at);
        let deadline = Instant::now() + arrival.limits.longest;
        loop {
            let until = match self.step(waiting.position, arrival, deadline) {
                Step::Begins(admission) => return Ok(admission),
                Step::Leaves(later) => return Err(later),
                Step::Waits(until) => until,
            };
            tokio::select! {
                // The sender is never dropped, because the gate holds it.
                _ = changed.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    fn step(&self, position: Position, arrival: &Arrival, deadline: Instant) -> Step {
        let now = Instant::now();
        let mut state = self.shared.lock();
        let older = state.waiting.range(..position).count();
        let mut until = deadline;
        if older == 0 {
            match state.opening(self.limits, arrival.tokens, now) {
                Opening::Now => {
                    state.begin(arrival.tokens, position.1, now);
                    return Step::Begins(Admission(Some(Admitted {
                        gate: Arc::clone(&self.shared),
                        number: position.1,
                    })));
                }
                Opening::NotBefore(at) => until = until.min(at),
                Opening::AfterACall => {}
            }
        }
        if older >= arrival.limits.calls.max(1) {
            Step::Leaves(state.later(arrival.limits, now))
        } else if now >= deadline {
            let pause = state.paused_until.map(|until| until.duration_since(now));
            let after = pause.unwrap_or_default().min(LONGEST_RETURN);
            Step::Leaves(Later { after })
        } else {
            Step::Waits(until)
        }
    }

    /// Stops new calls for the time `wait`, because the provider asks for a pause.
    pub(super) fn pause(&self, wait: Duration) {
        let mut state = self.shared.lock();
        let until = Instant::now() + wait;
        if state.paused_until.is_none_or(|known| known < until) {
            state.paused_until = Some(until);
            let provider = &self.shared.provider;
            tracing::info!(provider, ?wait, "the provider asks to wait");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call that begins now.
    fn begin(&mut self, tokens: u64, number: u64, now: Instant) {
        self.running += 1;
        self.begun.push_back(BegunCall {
            at: now,
            tokens: tokens.max(1),
            number,
        });
    }

    /// Returns the time at which a call with `tokens` tokens may begin.
    fn opening(&mut self, limits: CallLimits, tokens: u64, now: Instant) -> Opening {
        let calls = &mut self.begun;
        while calls
            .front()
            .is_some_and(|oldest| oldest.at + MINUTE <= now)
        {
            calls.pop_front();
        }
        if limits.concurrent.is_some_and(|most| self.running >= most) {
            return Opening::AfterACall;
        }
        let most = limits.per_minute.unwrap_or(usize::MAX);
        let too_many = (calls.len() + 1).saturating_sub(most);
        // A call above the whole limit goes through alone.
        let most = limits.tokens_per_minute.unwrap_or(u64::MAX);
        let room = most - tokens.min(most);
        let mut taken: u64 = calls.iter().map(|call| call.tokens).sum();
        let too_large = calls.iter().take_while(|call| {
            let has_room = taken <= room;
            taken -= call.tokens;
            !has_room
        });
        let ends = too_many.max(too_large.count());
        let free = ends.checked_sub(1).and_then(|last| calls.get(last));
        let free = free.map(|call| call.at + MINUTE);
        match free.into_iter().chain(self.paused_until).max() {
            Some(at) if at > now => Opening::NotBefore(at),
            _ => Opening::Now,
        }
    }

    /// Refuses a call behind enough older calls. The refused calls come again one after another, and the first refused
    /// call comes first. In the longest time of a wait, twice as many calls come again as have begun in the last time of
    /// this length, so that a fast provider does not wait for calls. At least as many come again as may wait.
    fn later(&mut self, limits: WaitLimits, now: Instant) -> Later {
        let is_recent = |call: &&BegunCall| call.at + limits.longest > now;
        let begun = self.begun.iter().rev().take_while(is_recent).count();
        let calls = limits.calls.max(2 * begun).max(1);
        let pause = limits.longest / u32::try_from(calls).unwrap_or(u32::MAX);
        let earliest = now + limits.longest;
        let next = self.last_return.map(|last| last + pause);
        let times = next.into_iter().chain(self.paused_until);
        let at = times.fold(earliest, Instant::max);
        let at = at.min(now + LONGEST_RETURN);
        self.last_return = Some(at);
        Later {
            after: at.duration_since(now),
        }
    }
}

/// A waiting call. Dropping the value ends the wait.
struct Waiting<'a> {
    gate: &'a Shared,
    position: Position,
}

impl<'a> Waiting<'a> {
    fn of(gate: &'a Shared, asked_at: SystemTime) -> Self {
        let mut state = gate.lock();
        let position = (asked_at, state.arrivals);
        state.arrivals += 1;
        state.waiting.insert(position);
        turns::calls_waiting(&gate.provider, state.waiting.len());
        drop(state);
        // A younger call may have to leave.
        gate.changed.send_replace(());
        Self { gate, position }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.waiting.remove(&self.position);
        turns::calls_waiting(&self.gate.provider, state.waiting.len());
        drop(state);
        self.gate.changed.send_replace(());
    }
}
