//! A simulation: one conversation, two workers, two gateways, a client and an operator. Each step is one enabled event,
//! chosen by the seed. After the client's last request the faults stop, and everything must come to its end.

mod client;
mod end;
mod looks;
mod persons;
mod steps;

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use everturn_store::sqlite::SqliteStore;

use self::client::{Act, acts};
use crate::{
    engine::{ActivityEnd, ActivityState, Attempt, RunNumber, RunStatus, TaskOf},
    facts::Facts,
    gateway::{Gateway, gateway},
    schedule::{ActorId, Owner},
    seed::Choices,
    worker::Worker,
    world::World,
};

const WORKERS: usize = 2;
const GATEWAYS: usize = 2;
/// How often a step is a fault, in 100 steps.
const FAULTS: usize = 6;
/// How often the client and the operator may act, in 100 steps. A seed chooses one of the numbers.
const HURRY: [usize; 3] = [100, 30, 10];
/// The most steps while faults happen.
const MAX_STEPS: usize = 600;
/// The most steps after the faults, until everything has come to its end.
const MAX_CALM_STEPS: usize = 3000;

/// The result of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What must never happen, and did.
    pub violations: Vec<String>,
    /// The steps in their order, for people.
    pub story: Vec<String>,
    /// The number of steps.
    pub steps: usize,
    /// The choices in their order, to repeat them.
    pub choices: Vec<u32>,
}

/// A promise that is checked after every step: returns what must never happen, and did.
pub type Promise = fn(&Facts) -> Option<String>;

/// An enabled event.
#[derive(Debug, Clone)]
enum Step {
    Actor(ActorId),
    Act,
    BeginTask(usize, RunNumber),
    Resolve(usize),
    CompleteTask(usize, RunNumber),
    BeginActivity(usize, RunNumber, u32),
    FireTimer(RunNumber, u32),
    TimeOutTask(RunNumber),
    TimeOutAttempt(Attempt),
    Kill(usize),
    KillGateway(usize),
    Freeze(usize),
    Wake(usize),
    /// A gateway's reconciler looks at stalled conversations.
    Look(usize),
    /// A gateway looks at the leases of the workers.
    LookAtLeases(usize),
    /// People turn to a call that waits for them.
    Turn(String),
    /// A late call arrives at the engine.
    Arrive(usize),
    Start,
    Forget(usize, RunNumber),
}

/// The end of a local activity, which its task does not know yet.
struct LocalEnd {
    worker: usize,
    run: RunNumber,
    task: TaskOf,
    seq: u32,
    end: ActivityEnd,
}

struct Simulation {
    world: World,
    /// The live worker processes. A process that starts again has another number.
    workers: BTreeMap<usize, Worker>,
    next_process: usize,
    gateways: Vec<Gateway>,
    local_ends: Rc<RefCell<Vec<LocalEnd>>>,
    acts: Vec<Act>,
    /// How often the client and the operator may act, in 100 steps. An act in the middle of a turn needs a patient client.
    hurry: usize,
    /// The client's number of messages.
    messages: usize,
    /// `on_busy` of the client's last message.
    on_busy: &'static str,
    /// The hours between the present and the last look of a reconciler.
    hours: u32,
    promise: Option<Promise>,
}

/// Runs the simulation of a list of choices, perhaps with one more promise.
///
/// # Errors
///
/// An error when the store cannot be opened.
pub(crate) async fn simulate(
    choices: Choices,
    promise: Option<Promise>,
) -> anyhow::Result<Outcome> {
    let store = SqliteStore::open_in_memory().await?;
    let world = World::new(store, choices);
    let mut simulation = Simulation::new(world, promise);
    let steps = simulation.run().await?;
    simulation.check_end().await?;
    let mut violations = std::mem::take(&mut simulation.world.facts().violations);
    let mut promises = std::mem::take(&mut simulation.world.facts().promises);
    promises.check_signals(&simulation.world.engine());
    promises.check_waits(&simulation.world.engine());
    violations.append(&mut promises.violations);
    violations.append(&mut simulation.world.engine().unknown_commands);
    let panicked = simulation.world.schedule.panicked();
    violations.extend(panicked.iter().map(|actor| format!("{actor} panics")));
    let outcome = Outcome {
        violations,
        story: simulation.world.schedule.story(),
        steps,
        choices: simulation.world.choices().made(),
    };
    for worker in simulation.workers.keys() {
        simulation.world.schedule.kill(Owner::Worker(*worker));
    }
    for gateway in 0..GATEWAYS {
        simulation.world.schedule.kill(Owner::Gateway(gateway));
    }
    simulation.world.store.close().await;
    Ok(outcome)
}

impl Simulation {
    fn new(world: World, promise: Option<Promise>) -> Self {
        let gateways = (0..GATEWAYS).map(|_| gateway(&world)).collect();
        let acts = acts(&mut world.choices());
        let hurry = world.choices().one_of(HURRY.to_vec()).unwrap_or(100);
        Self {
            world,
            workers: (0..WORKERS)
                .map(|number| (number, Worker::default()))
                .collect(),
            next_process: WORKERS,
            gateways,
            local_ends: Rc::default(),
            acts,
            hurry,
            messages: 0,
            on_busy: "queue",
            hours: 0,
            promise,
        }
    }

    async fn run(&mut self) -> anyhow::Result<usize> {
        let mut steps = 0;
        while steps < MAX_STEPS && self.has_faults() {
            let Some(step) = self.next_step() else { break };
            self.take(step).await;
            steps += 1;
        }
        self.world.schedule.tell("the faults end");
        self.world.calm();
        for calm in 0..MAX_CALM_STEPS {
            if !self.world.facts().violations.is_empty() {
                return Ok(steps + calm);
            }
            match self.next_step() {
                Some(step) => self.take(step).await,
                None if self.is_done().await? => return Ok(steps + calm),
                None => self.time_passes().await?,
            }
        }
        let text = "the conversation does not come to its end".to_owned();
        self.world.facts().violations.push(text);
        Ok(steps + MAX_CALM_STEPS)
    }

    fn has_faults(&self) -> bool {
        self.world.facts().violations.is_empty()
            && (!self.acts.is_empty() || !self.world.schedule.waiting().is_empty())
    }

    /// Chooses an enabled event. Faults are rarer than other events.
    fn next_step(&self) -> Option<Step> {
        let is_calm = self.world.is_calm();
        let mut steps = self
            .world
            .schedule
            .waiting()
            .into_iter()
            .map(Step::Actor)
            .collect();
        let mut faults = Vec::new();
        self.add_worker_steps(&mut steps, &mut faults);
        self.add_engine_steps(&mut steps, &mut faults, is_calm);
        self.add_gateway_faults(&mut faults);
        steps.extend((0..self.world.late_calls()).map(Step::Arrive));
        steps.extend(self.world.people().open().into_iter().map(Step::Turn));
        let mut choices = self.world.choices();
        let may_act = !is_calm && !self.acts.is_empty();
        if may_act && (steps.is_empty() || choices.percent(self.hurry)) {
            steps.push(Step::Act);
        }
        let is_fault = choices.percent(FAULTS);
        if !is_calm && (is_fault || steps.is_empty()) && !faults.is_empty() {
            return choices.one_of(faults);
        }
        choices.one_of(steps)
    }

    fn add_worker_steps(&self, steps: &mut Vec<Step>, faults: &mut Vec<Step>) {
        for (index, end) in self.local_ends.borrow().iter().enumerate() {
            if !self.is_frozen(end.worker) {
                steps.push(Step::Resolve(index));
            }
        }
        if self.workers.len() < WORKERS {
            // A killed worker comes back, also in the calm.
            steps.push(Step::Start);
        }
        for (number, worker) in &self.workers {
            faults.push(Step::Kill(*number));
            if self.is_frozen(*number) {
                steps.push(Step::Wake(*number));
                continue;
            }
            faults.push(Step::Freeze(*number));
            for (run, open) in &worker.open {
                if open.local == 0 {
                    steps.push(Step::CompleteTask(*number, *run));
                }
            }
        }
    }

    fn add_engine_steps(&self, steps: &mut Vec<Step>, faults: &mut Vec<Step>, is_calm: bool) {
        let engine = self.world.engine();
        let is_dead = |worker: usize| !self.workers.contains_key(&worker) || self.is_frozen(worker);
        let live: Vec<_> = self.workers.keys().copied().collect();
        let live: Vec<_> = live.into_iter().filter(|it| !is_dead(*it)).collect();
        for (number, run) in engine.runs() {
            if run.status != RunStatus::Running {
                continue;
            }
            match run.task {
                None if run.has_task() => {
                    steps.extend(live.iter().map(|worker| Step::BeginTask(*worker, number)));
                }
                Some(task) if is_dead(task.worker) || !self.has_open(number, task) => {
                    steps.push(Step::TimeOutTask(number));
                }
                Some(_) => faults.push(Step::TimeOutTask(number)),
                None => {}
            }
            for (seq, activity) in &run.activities {
                match activity.state {
                    ActivityState::Scheduled => {
                        let at = |worker: &usize| Step::BeginActivity(*worker, number, *seq);
                        steps.extend(live.iter().map(at));
                    }
                    ActivityState::Started(attempt) if is_dead(attempt.worker) => {
                        steps.push(Step::TimeOutAttempt(attempt));
                    }
                    ActivityState::Started(attempt) => faults.push(Step::TimeOutAttempt(attempt)),
                }
            }
            if !is_calm {
                faults.extend(live.iter().map(|worker| Step::Forget(*worker, number)));
                faults.extend(run.timers.iter().map(|seq| Step::FireTimer(number, *seq)));
            }
        }
    }

    fn is_frozen(&self, worker: usize) -> bool {
        self.world.schedule.is_frozen(Owner::Worker(worker))
    }

    fn has_open(&self, run: RunNumber, task: TaskOf) -> bool {
        let worker = self.workers.get(&task.worker);
        let open = worker.and_then(|worker| worker.open.get(&run));
        open.is_some_and(|open| open.task == task)
    }
}
