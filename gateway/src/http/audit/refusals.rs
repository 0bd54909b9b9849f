//! Audit entries about refused credentials and refused scopes. Any client can cause any number of refusals, and
//! therefore the gateway limits the written entries per minute: per address, and for every address together. When the
//! minute is over, the gateway writes the number of left-out refusals. Requests never wait for the writes.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_proto::words::{AuditAction, AuditActorKind, AuditOutcome, AuditTargetKind};
use everturn_store::{ApiKey, AuditActor, NewAuditEntry};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::Instant,
};

use super::{
    source::Source,
    trail::{Audit, Doer, WithDetails},
};
use crate::{config::AuditConfig, connections::client::counted};

/// How long a count lasts.
const WINDOW: Duration = Duration::from_mins(1);
/// How often the gateway checks whether a window is over.
const LOOK: Duration = Duration::from_secs(1);
/// The most entries in the queue: the entries of some minutes, while the store is away.
const MAX_WAITING: usize = 500;
/// The most counted addresses in a window, some 100 bytes each. The gateway counts the refusals of further addresses
/// together.
const MAX_ADDRESSES: usize = 10_000;
/// The most addresses with their own entry about left-out refusals at the end of a window.
const MAX_SUMMARIES: usize = 20;
/// How long the gateway waits for the store at its end.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// The refusals of this gateway.
pub(crate) struct Refusals {
    audit: Audit,
    of_address: u32,
    of_all: u32,
    window: Mutex<Window>,
    waiting: mpsc::Sender<NewAuditEntry>,
    taken: AsyncMutex<mpsc::Receiver<NewAuditEntry>>,
}

/// The counts of refusals in the current window.
struct Window {
    begun: Instant,
    written: u32,
    addresses: HashMap<IpAddr, Count>,
    /// Refusals of addresses without a count, and entries that could not be written.
    of_others: u64,
}

#[derive(Default)]
struct Count {
    written: u32,
    left_out: u64,
}

impl Window {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            written: 0,
            addresses: HashMap::new(),
            of_others: 0,
        }
    }

    /// Returns true when the gateway should write a further refusal of the address. Otherwise counts the refusal as
    /// left out.
    fn admits(&mut self, address: IpAddr, of_address: u32, of_all: u32) -> bool {
        if self.addresses.len() >= MAX_ADDRESSES && !self.addresses.contains_key(&address) {
            self.of_others += 1;
            return false;
        }
        let count = self.addresses.entry(address).or_default();
        if self.written >= of_all || count.written >= of_address {
            count.left_out += 1;
            return false;
        }
        count.written += 1;
        self.written += 1;
        true
    }

    /// Returns the numbers of left-out refusals: for the addresses with the most, and the sum of the rest.
    fn left_out(self) -> (Vec<(IpAddr, u64)>, u64) {
        let counts = self.addresses.into_iter();
        let mut counts: Vec<_> = counts
            .map(|(address, count)| (address, count.left_out))
            .filter(|(_, left_out)| *left_out > 0)
            .collect();
        counts.sort_unstable_by_key(|(address, left_out)| (u64::MAX - left_out, *address));
        let rest = counts.split_off(counts.len().min(MAX_SUMMARIES));
        let of_rest: u64 = rest.iter().map(|(_, left_out)| left_out).sum();
        (counts, of_rest + self.of_others)
    }
}

impl Refusals {
    pub(crate) fn new(audit: Audit, config: &AuditConfig) -> Arc<Self> {
        let (waiting, taken) = mpsc::channel(MAX_WAITING);
        Arc::new(Self {
            audit,
            of_address: config.refused_of_address.get(),
            of_all: config.refused.get(),
            window: Mutex::new(Window::new()),
            waiting,
            taken: AsyncMutex::new(taken),
        })
    }

    /// Notes a refused credential and the reason. `ended` is the formerly valid key, when the request had the key's
    /// right secret. `claimed` is the key id in the request.
    pub(crate) fn of_credential(
        &self,
        reason: &str,
        ended: Option<&ApiKey>,
        claimed: Option<&str>,
        source: &Source,
        endpoint: &str,
    ) {
        self.note(source, || {
            let target = (AuditTargetKind::Endpoint, endpoint);
            let entry = self
                .audit
                .blank(source, AuditAction::CredentialRefused, target)
                .with("reason", reason);
            match (ended, claimed) {
                // The request had the key's right secret, and therefore the entry can name the key and its tenant.
                (Some(key), _) => NewAuditEntry {
                    tenant_id: Some(key.access.tenant_id.clone()),
                    actor: AuditActor {
                        kind: key.kind.as_str().into(),
                        id: Some(key.id.clone()),
                    },
                    ..entry
                },
                (None, Some(claimed)) => entry.with("claimed", claimed),
                (None, None) => entry,
            }
        });
    }

    /// Notes that a valid credential lacks a required scope.
    pub(crate) fn of_scope(&self, caller: &impl Doer, scopes: &str, endpoint: &str) {
        self.note(caller.source(), || {
            let target = (AuditTargetKind::Endpoint, endpoint);
            self.audit
                .entry(caller, AuditAction::ScopeRefused, target)
                .with("scopes", scopes)
        });
    }

    fn note(&self, source: &Source, entry: impl FnOnce() -> NewAuditEntry) {
        let address = counted(source.address.unwrap_or(UNKNOWN));
        if !self.lock().admits(address, self.of_address, self.of_all) {
            return;
        }
        let mut entry = entry();
        entry.outcome = AuditOutcome::Refused;
        self.send(entry);
    }

    fn send(&self, entry: NewAuditEntry) {
        if self.waiting.try_send(entry).is_err() {
            self.lock().of_others += 1;
        }
    }

    /// Writes noted entries until the future is dropped.
    pub(crate) async fn run(&self) {
        let mut taken = self.taken.lock().await;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                Some(entry) = taken.recv() => self.write(&entry).await,
                _ = looks.tick() => {
                    if self.lock().begun.elapsed() >= WINDOW {
                        self.end_window();
                    }
                }
            }
        }
    }

    /// Writes the remaining entries, and the numbers of left-out refusals.
    pub(crate) async fn end(&self) {
        let mut taken = self.taken.lock().await;
        self.end_window();
        let writing = async {
            while let Ok(entry) = taken.try_recv() {
                self.write(&entry).await;
            }
        };
        if tokio::time::timeout(LAST_WRITES, writing).await.is_err() {
            tracing::warn!("some refused credentials are missing in the audit trail");
        }
    }

    /// Begins another window, and notes how many refusals were left out in the last window.
    fn end_window(&self) {
        let window = std::mem::replace(&mut *self.lock(), Window::new());
        let (of_addresses, of_others) = window.left_out();
        for (address, left_out) in of_addresses {
            let source = Source {
                address: (address != UNKNOWN).then_some(address),
                request_id: None,
            };
            self.send(self.summary(&source, left_out));
        }
        if of_others > 0 {
            self.send(self.summary(&Source::default(), of_others));
        }
    }

    fn summary(&self, source: &Source, left_out: u64) -> NewAuditEntry {
        let target = (AuditTargetKind::Endpoint, "");
        let entry = self
            .audit
            .blank(source, AuditAction::CredentialRefused, target)
            .with("left_out", left_out);
        NewAuditEntry {
            outcome: AuditOutcome::Refused,
            actor: AuditActor {
                kind: AuditActorKind::Anonymous,
                id: None,
            },
            ..entry
        }
    }

    async fn write(&self, entry: &NewAuditEntry) {
        if let Err(error) = self.audit.append(entry).await {
            self.lock().of_others += 1;
            tracing::warn!(%error, "a refused credential is missing in the audit trail");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stands for an unknown address.
const UNKNOWN: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let mut window = Window::new();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let mut admitted = 0;
        for number in 0..200_000 {
            admitted += u32::from(window.admits(address(number % 50_000), 5, 60));
        }
        assert_eq!(admitted, 60);
        assert!(window.addresses.len() <= MAX_ADDRESSES);
        let (of_addresses, of_others) = window.left_out();
        assert!(of_addresses.len() <= MAX_SUMMARIES);
        let told: u64 = of_addresses.iter().map(|(_, left_out)| left_out).sum();
        assert_eq!(told + of_others + 60, 200_000, "none is lost");
    }

    #[test]
    fn one_address_takes_no_room_from_others() {
        let mut window = Window::new();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let admitted = (0..1000).filter(|_| window.admits(one, 5, 60)).count();
        assert_eq!(admitted, 5);
        assert!(window.admits(other, 5, 60));
        assert_eq!(window.left_out(), (vec![(one, 995)], 0));
    }
}
