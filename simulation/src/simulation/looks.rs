//! The loops of the gateways without their pauses: the looks of the reconcilers at stalled conversations, and the looks at
//! the leases of workers. The schedule chooses when a gateway looks.

use chrono::{TimeDelta, Utc};
use everturn_store::{Access, Reconciliation, WorkerLeases};

use super::{GATEWAYS, Simulation, Step, client::CONVERSATION};
use crate::{leases::Answers, schedule::Owner, worker::lease_of, world::World};

/// The name of a reconciler among the actors of its gateway.
const RECONCILER: &str = "reconciler";
/// The name of the watch of leases among the actors of its gateway.
const WATCH: &str = "watch of leases";
/// The most looks at the leases in one step.
const MAX_LOOKS: usize = 6;
/// How often the store is slow for a look at the leases, and how often the store is away, in 100 looks.
const OTHER_LOOKS: usize = 10;

impl Simulation {
    /// Adds the faults of gateways, and the looks whose gateway has no look under way.
    pub(super) fn add_gateway_faults(&self, faults: &mut Vec<Step>) {
        for number in 0..GATEWAYS {
            faults.push(Step::KillGateway(number));
            if !self.is_at_work(number, RECONCILER) {
                faults.push(Step::Look(number));
            }
            if !self.is_at_work(number, WATCH) {
                faults.push(Step::LookAtLeases(number));
            }
        }
    }

    fn is_at_work(&self, number: usize, name: &str) -> bool {
        let name = format!("gateway {number}, {name}");
        self.world.schedule.has(Owner::Gateway(number), &name)
    }

    /// A reconciler looks. Some time has passed since the last look of any reconciler, or no time.
    pub(super) async fn look(&mut self, number: usize) {
        let Some(gateway) = self.gateways.get(number) else {
            return;
        };
        if self.world.is_calm() || self.world.choices().percent(80) {
            self.hours += 1;
        }
        let now = Utc::now() + TimeDelta::hours(self.hours.into());
        let reconciler = gateway.reconciler.clone();
        let world = self.world.clone();
        let work = async move {
            if let Err(error) = reconciler.look(now).await {
                world.schedule.tell(format!("the look ends: {error}"));
            }
        };
        let name = format!("gateway {number}, {RECONCILER}");
        let owner = Owner::Gateway(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    /// A gateway looks at the leases once or a few times. Between two looks, some of the workers renew their leases. No worker
    /// can renew its lease while the store is slow or away.
    pub(super) async fn look_at_leases(&mut self, number: usize) {
        let Some(gateway) = self.gateways.get(number).cloned() else {
            return;
        };
        let looks = 1 + self.world.choices().below(MAX_LOOKS);
        let world = self.world.clone();
        let living: Vec<_> = self.workers.keys().copied().collect();
        let living: Vec<_> = living
            .into_iter()
            .filter(|it| !self.is_frozen(*it))
            .collect();
        let work = async move {
            let taken = gateway.watch.lock().ok().and_then(|mut watch| watch.take());
            let Some(mut watch) = taken else { return };
            for _look in 0..looks {
                let answers = answers(&world);
                let renewals = if answers == Answers::Quickly { 70 } else { 0 };
                for worker in &living {
                    if world.choices().percent(renewals) {
                        let _ = world.store.renew_lease(&lease_of(*worker)).await;
                    }
                }
                world.schedule.step("looks at the leases").await;
                gateway.leases.begin_look(answers);
                let _ = watch.look().await;
                watch.restarted().await;
            }
            if let Ok(mut kept) = gateway.watch.lock() {
                *kept = Some(watch);
            }
        };
        let name = format!("gateway {number}, {WATCH}");
        let owner = Owner::Gateway(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    /// True when no workflow runs, the conversation has no unfinished message, and no hooks wait for their workflow.
    pub(super) async fn is_done(&self) -> anyhow::Result<bool> {
        let far = Utc::now() + TimeDelta::days(3650);
        let hooks = self.world.store.due_hooks(far, 1).await?;
        let is_left = !self.unfinished().await?.is_empty() || !hooks.is_empty();
        Ok(!is_left && !self.world.engine().has_running())
    }

    /// Returns the messages without an end: the message of the turn, and the waiting messages.
    async fn unfinished(&self) -> anyhow::Result<Vec<String>> {
        let id = Access::tenant("default").id_of(CONVERSATION);
        let unfinished = self.world.store.unfinished(&id).await?;
        Ok(unfinished.map_or_else(Vec::new, |left| {
            let turn = left.turn.map(|turn| turn.message_id);
            let waiting = left.waiting.into_iter().map(|waiting| waiting.id);
            turn.into_iter().chain(waiting).collect()
        }))
    }

    /// Checks a moment in which nothing can happen without a look of a reconciler.
    async fn check_quiet(&self) -> anyhow::Result<()> {
        let left = self.unfinished().await?;
        let left = left.iter().map(String::as_str);
        self.world.facts().promises.is_quiet(left);
        Ok(())
    }

    /// Nothing happens without time: a timer fires, or a reconciler finds what is left.
    pub(super) async fn time_passes(&mut self) -> anyhow::Result<()> {
        let timer = self.world.engine().first_timer();
        if let Some((run, seq)) = timer {
            if self.unfinished().await?.is_empty() {
                self.world.facts().promises.stays_open(run);
            }
            self.take(Step::FireTimer(run, seq)).await;
        } else {
            self.check_quiet().await?;
            let number = self.world.choices().below(GATEWAYS);
            self.take(Step::Look(number)).await;
        }
        Ok(())
    }
}

/// Chooses how the store answers in a look at the leases.
fn answers(world: &World) -> Answers {
    let is_slow = world.fault(OTHER_LOOKS);
    let is_away = !is_slow && world.fault(OTHER_LOOKS);
    if is_slow {
        Answers::Slowly
    } else if is_away {
        Answers::Never
    } else {
        Answers::Quickly
    }
}
