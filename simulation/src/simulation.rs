//! A simulation: one conversation, two workers, two gateways, a client and an operator. Each step is one enabled event,
//! chosen by the seed. After the client's last request the faults stop, and everything must come to its end.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use axum::Router;
use everturn_proto::ids;
use everturn_store::{
    Access, Conversations, EventLog, EventReader, PageLimit, sqlite::SqliteStore,
};
use serde_json::{Value, json};

use crate::{
    activities::{self, End},
    engine::{ActivityEnd, ActivityState, Attempt, Committed, RunNumber, RunStatus, TaskOf},
    gateway::{gateway, post},
    schedule::{ActorId, Owner},
    seed::Choices,
    worker::{LocalActivity, Worker},
    world::World,
};

/// The conversation of a simulation.
const CONVERSATION: &str = "c";
const WORKERS: usize = 2;
const GATEWAYS: usize = 2;
/// The most requests of the client.
const MAX_REQUESTS: usize = 8;
/// The most steps while faults happen.
const MAX_STEPS: usize = 600;
/// The most steps after the faults, until everything has come to its end.
const MAX_CALM_STEPS: usize = 3000;

/// The result of a simulation.
#[derive(Debug)]
pub struct Outcome {
    /// What must never happen, and did.
    pub violations: Vec<String>,
    /// The steps in their order, for people.
    pub story: Vec<String>,
    /// The number of steps.
    pub steps: usize,
}

/// A request of the client, or an act of the operator.
#[derive(Debug, Clone)]
enum Act {
    Send(&'static str),
    /// Sends the last message again.
    SendAgain,
    /// Cancels one of the messages.
    Cancel,
    Resume,
    /// The operator terminates the workflow.
    Terminate,
    /// The operator cancels the workflow.
    CancelWorkflow,
}

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
    Start(usize),
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
    workers: Vec<Option<Worker>>,
    gateways: Vec<Router>,
    local_ends: Rc<RefCell<Vec<LocalEnd>>>,
    acts: Vec<Act>,
    /// The client's number of messages.
    messages: usize,
    /// The answer to the last resume says that nothing is left.
    is_done: Rc<Cell<bool>>,
    is_resuming: Rc<Cell<bool>>,
}

/// Runs the simulation of a seed.
///
/// # Errors
///
/// An error when the store cannot be opened.
pub async fn simulate(seed: u64) -> anyhow::Result<Outcome> {
    let store = SqliteStore::open_in_memory().await?;
    let world = World::new(store, Choices::new(seed));
    let mut simulation = Simulation::new(world);
    let steps = simulation.run().await?;
    simulation.check_end().await?;
    let mut violations = std::mem::take(&mut simulation.world.facts().violations);
    violations.append(&mut simulation.world.engine().unknown_commands);
    let outcome = Outcome {
        violations,
        story: simulation.world.schedule.story(),
        steps,
    };
    for worker in 0..WORKERS {
        simulation.world.schedule.kill(Owner::Worker(worker));
    }
    for gateway in 0..GATEWAYS {
        simulation.world.schedule.kill(Owner::Gateway(gateway));
    }
    simulation.world.store.close().await;
    Ok(outcome)
}

impl Simulation {
    fn new(world: World) -> Self {
        let gateways = (0..GATEWAYS).map(|_| gateway(&world)).collect();
        let acts = acts(&mut world.choices());
        Self {
            world,
            workers: (0..WORKERS).map(|_| Some(Worker::default())).collect(),
            gateways,
            local_ends: Rc::default(),
            acts,
            messages: 0,
            is_done: Rc::default(),
            is_resuming: Rc::default(),
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
                None if self.is_done.get() => return Ok(steps + calm),
                None => self.resume().await,
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
        if !is_calm && !self.acts.is_empty() {
            steps.push(Step::Act);
        }
        let mut choices = self.world.choices();
        let is_fault = choices.percent(4);
        if !is_calm && (is_fault || steps.is_empty()) && !faults.is_empty() {
            return choices.one_of(faults);
        }
        choices.one_of(steps)
    }

    fn add_worker_steps(&self, steps: &mut Vec<Step>, faults: &mut Vec<Step>) {
        let ends = 0..self.local_ends.borrow().len();
        steps.extend(ends.map(Step::Resolve));
        for (number, worker) in self.workers.iter().enumerate() {
            let Some(worker) = worker else {
                // A killed worker comes back, also in the calm.
                steps.push(Step::Start(number));
                continue;
            };
            faults.push(Step::Kill(number));
            for (run, open) in &worker.open {
                if open.local == 0 {
                    steps.push(Step::CompleteTask(number, *run));
                }
            }
        }
    }

    fn add_engine_steps(&self, steps: &mut Vec<Step>, faults: &mut Vec<Step>, is_calm: bool) {
        let engine = self.world.engine();
        let is_dead = |worker: usize| !matches!(self.workers.get(worker), Some(Some(_)));
        for (number, run) in engine.runs() {
            if run.status != RunStatus::Running {
                continue;
            }
            match run.task {
                None if run.has_task() => {
                    let live = (0..WORKERS).filter(|worker| !is_dead(*worker));
                    steps.extend(live.map(|worker| Step::BeginTask(worker, number)));
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
                        let live = (0..WORKERS).filter(|worker| !is_dead(*worker));
                        steps.extend(live.map(|worker| Step::BeginActivity(worker, number, *seq)));
                    }
                    ActivityState::Started(attempt) if is_dead(attempt.worker) => {
                        steps.push(Step::TimeOutAttempt(attempt));
                    }
                    ActivityState::Started(attempt) => faults.push(Step::TimeOutAttempt(attempt)),
                }
            }
            if !is_calm {
                let live = (0..WORKERS).filter(|worker| !is_dead(*worker));
                faults.extend(live.map(|worker| Step::Forget(worker, number)));
                faults.extend(run.timers.iter().map(|seq| Step::FireTimer(number, *seq)));
            }
        }
    }

    fn has_open(&self, run: RunNumber, task: TaskOf) -> bool {
        let worker = self.workers.get(task.worker).and_then(Option::as_ref);
        let open = worker.and_then(|worker| worker.open.get(&run));
        open.is_some_and(|open| open.task == task)
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Actor(id) => self.world.schedule.release(id).await,
            Step::Act => self.act().await,
            Step::BeginTask(worker, run) => self.begin_task(worker, run).await,
            Step::Resolve(index) => self.resolve(index).await,
            Step::CompleteTask(worker, run) => self.complete_task(worker, run),
            Step::BeginActivity(worker, run, seq) => self.begin_activity(worker, run, seq).await,
            Step::FireTimer(run, seq) => {
                if let Some(run) = self.world.engine().run_mut(run) {
                    run.fire_timer(seq);
                }
            }
            Step::TimeOutTask(run) => {
                self.tell(format!("the engine: takes the task of run {run} away"));
                self.world.engine().time_out_task(run);
            }
            Step::TimeOutAttempt(attempt) => {
                self.tell(format!("the engine: gives up attempt {}", attempt.id));
                self.world.engine().retry_activity(attempt);
            }
            Step::Kill(worker) => {
                self.tell(format!("worker {worker}: dies"));
                self.world.schedule.kill(Owner::Worker(worker));
                self.local_ends
                    .borrow_mut()
                    .retain(|end| end.worker != worker);
                if let Some(worker) = self.workers.get_mut(worker) {
                    *worker = None;
                }
            }
            Step::Start(number) => {
                self.tell(format!("worker {number}: starts"));
                if let Some(worker) = self.workers.get_mut(number) {
                    *worker = Some(Worker::default());
                }
            }
            Step::Forget(worker, run) => {
                if let Some(worker) = self.worker(worker)
                    && !worker.open.contains_key(&run)
                {
                    worker.forget(run);
                }
            }
        }
    }

    fn tell(&self, line: impl Into<String>) {
        self.world.schedule.tell(line);
    }

    fn worker(&mut self, number: usize) -> Option<&mut Worker> {
        self.workers.get_mut(number)?.as_mut()
    }

    async fn begin_task(&mut self, number: usize, run_number: RunNumber) {
        let (task, run) = {
            let mut engine = self.world.engine();
            // Some runs are old, others are young: the engine's clock moves.
            let moves = if self.world.choices().percent(30) {
                2000
            } else {
                1
            };
            engine.now_ms += moves;
            let Some(task) = engine.begin_task(run_number, number) else {
                return;
            };
            let Some(run) = engine.run(run_number).cloned() else {
                return;
            };
            (task, run)
        };
        self.tell(format!(
            "worker {number}: takes a task of run {run_number} with {} new events",
            task.taken
        ));
        let Some(worker) = self.worker(number) else {
            return;
        };
        let local = worker.begin(run_number, &run, task);
        self.start_local(number, run_number, task, local).await;
    }

    async fn resolve(&mut self, index: usize) {
        let end = self.local_ends.borrow_mut().remove(index);
        let run = self.world.engine().run(end.run).cloned();
        let Some((run, worker)) = run.zip(self.worker(end.worker)) else {
            return;
        };
        let is_open = worker
            .open
            .get(&end.run)
            .is_some_and(|open| open.task == end.task);
        if !is_open {
            return;
        }
        let resolution = end.end.resolution(end.seq, true);
        let local = worker.resolve(end.run, &run, resolution);
        self.start_local(end.worker, end.run, end.task, local).await;
    }

    /// Starts the local activities of a task.
    async fn start_local(
        &mut self,
        number: usize,
        run: RunNumber,
        task: TaskOf,
        local: Result<Vec<LocalActivity>, String>,
    ) {
        let local = match local {
            Ok(local) => local,
            Err(error) => {
                self.world.facts().violations.push(error);
                return;
            }
        };
        for activity in local {
            let (world, ends) = (self.world.clone(), self.local_ends.clone());
            let name = format!("worker {number}, {}", activity.name);
            let work = async move {
                let end = activities::run(&world, &activity.name, &activity.input, None).await;
                let end = match end {
                    End::Ended(end) => end,
                    End::Again(message) => ActivityEnd::Failed {
                        code: "store_unavailable".to_owned(),
                        message,
                        is_final: false,
                    },
                };
                ends.borrow_mut().push(LocalEnd {
                    worker: number,
                    run,
                    task,
                    seq: activity.seq,
                    end,
                });
            };
            let owner = Owner::Worker(number);
            self.world.schedule.spawn(name, owner, work).await;
        }
    }

    fn complete_task(&mut self, number: usize, run: RunNumber) {
        let Some((task, done)) = self.worker(number).and_then(|worker| worker.finished(run)) else {
            return;
        };
        let committed = self.world.engine().complete_task(run, task, done);
        self.tell(format!(
            "worker {number}: completes a task of run {run}: {committed:?}"
        ));
        if committed != Committed::Yes
            && let Some(worker) = self.worker(number)
        {
            worker.forget(run);
        }
    }

    async fn begin_activity(&mut self, number: usize, run: RunNumber, seq: u32) {
        let started = self.world.engine().start_activity(run, seq, number);
        let Some((attempt, activity)) = started else {
            return;
        };
        let world = self.world.clone();
        let name = format!(
            "worker {number}, {} (attempt {})",
            activity.name, attempt.id
        );
        let work = async move {
            let end = activities::run(&world, &activity.name, &activity.input, Some(attempt)).await;
            match end {
                End::Ended(end) => world.engine().end_activity(attempt, end),
                End::Again(_) => world.engine().retry_activity(attempt),
            }
        };
        let owner = Owner::Worker(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    async fn act(&mut self) {
        let Some(act) = self.acts.pop() else { return };
        self.tell(format!("the client: {act:?}"));
        let number = self.world.choices().below(GATEWAYS);
        match act {
            Act::Send(on_busy) => {
                self.messages += 1;
                let key = format!("key-{}", self.messages);
                let body = json!({
                    "content": format!("message {}", self.messages), "message_id": key, "on_busy": on_busy,
                    "create": {},
                });
                self.send(number, body).await;
            }
            Act::SendAgain => {
                let key = format!("key-{}", self.messages);
                let body = json!({
                    "content": format!("message {}", self.messages), "message_id": key, "create": {},
                });
                if self.messages > 0 {
                    self.send(number, body).await;
                }
            }
            Act::Cancel => {
                let accepted: Vec<_> = self.world.facts().accepted.clone();
                let chosen = self.world.choices().one_of(accepted);
                if let Some(message_id) = chosen {
                    self.cancel(number, message_id).await;
                }
            }
            Act::Resume => self.resume().await,
            Act::Terminate => {
                self.world
                    .engine()
                    .terminate(&ids::workflow_id(CONVERSATION));
            }
            Act::CancelWorkflow => {
                self.world.engine().cancel(&ids::workflow_id(CONVERSATION));
            }
        }
    }

    async fn request(
        &self,
        number: usize,
        label: String,
        path: &'static str,
        body: Value,
        answered: impl FnOnce(&World, u16, &Value) + 'static,
    ) {
        let Some(gateway) = self.gateways.get(number).cloned() else {
            return;
        };
        let world = self.world.clone();
        let name = format!("gateway {number}, {label}");
        let work = async move {
            let path = format!("/conversations/{CONVERSATION}/{path}");
            // A client repeats a request without an answer.
            for _try in 0..3 {
                match post(&gateway, &path, &body).await {
                    Ok((503, _)) | Err(_) => world.schedule.step("repeats the request").await,
                    Ok((status, answer)) => {
                        answered(&world, status, &answer);
                        return;
                    }
                }
            }
        };
        let owner = Owner::Gateway(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    async fn send(&self, number: usize, body: Value) {
        let label = format!("message {} ({})", body["message_id"], body["on_busy"]);
        self.request(number, label, "messages", body, |world, status, answer| {
            if status == 202
                && let Some(id) = answer["message_id"].as_str()
                && !world.facts().accepted.iter().any(|known| known == id)
            {
                world.facts().accepted.push(id.to_owned());
            }
        })
        .await;
    }

    async fn cancel(&self, number: usize, message_id: String) {
        let body = json!({"message_id": message_id});
        let label = format!("cancel {message_id}");
        self.request(number, label, "cancel", body, move |world, _, answer| {
            if answer["status"] == "cancelling" {
                world
                    .schedule
                    .tell(format!("the cancel of {message_id} is answered"));
                world.facts().cancelled.insert(message_id);
            }
        })
        .await;
    }

    /// Asks a gateway to go on with whatever is left, as the reconciler does.
    async fn resume(&mut self) {
        let (is_done, is_resuming) = (self.is_done.clone(), self.is_resuming.clone());
        is_done.set(false);
        is_resuming.set(true);
        let body = json!({});
        self.request(
            0,
            "resume".to_owned(),
            "resume",
            body,
            move |_, status, _| {
                is_resuming.set(false);
                // Nothing has begun, or everything has ended.
                is_done.set(status == 404 || status == 409);
            },
        )
        .await;
    }

    /// Checks the end: every accepted message has one end, and nothing waits.
    async fn check_end(&self) -> anyhow::Result<()> {
        if !self.world.facts().violations.is_empty() {
            return Ok(());
        }
        let access = Access::tenant("default");
        let store = &self.world.store;
        let Some(conversation) = store.conversation(&access, CONVERSATION).await? else {
            return Ok(());
        };
        let everything = PageLimit {
            rows: 10_000,
            bytes: u32::MAX,
        };
        let log: EventLog = conversation.log();
        let events = store.events(&access, &log, 0, everything).await?.events;
        let mut violations = Vec::new();
        for message_id in &self.world.facts().accepted {
            let of_turn = events
                .iter()
                .filter(|event| event.message_id == *message_id);
            let ends = of_turn.filter(|event| {
                matches!(
                    event.event_type.as_str(),
                    "complete" | "cancelled" | "error"
                )
            });
            let ends = ends.count();
            let has_joined = events.iter().any(|event| {
                let data = event.event_data.as_ref().map(|data| data.to_value());
                event.event_type == "user_message"
                    && data.is_some_and(|data| data["message_id"] == message_id.as_str())
            });
            if ends > 1 || (ends == 0 && !has_joined) {
                violations.push(format!("{message_id} has {ends} ends"));
            }
        }
        self.world.facts().violations.append(&mut violations);
        Ok(())
    }
}

/// The client's requests and the operator's acts, in reverse order.
fn acts(choices: &mut Choices) -> Vec<Act> {
    let number = 2 + choices.below(MAX_REQUESTS - 1);
    let mut acts: Vec<_> = (1..number)
        .map(|_| match choices.below(14) {
            0..=3 => Act::Send("queue"),
            4..=5 => Act::Send("interrupt"),
            6..=7 => Act::Send("steer"),
            8 => Act::SendAgain,
            9..=10 => Act::Cancel,
            11 => Act::Resume,
            12 => Act::Terminate,
            _ => Act::CancelWorkflow,
        })
        .collect();
    acts.push(Act::Send("queue"));
    acts
}
