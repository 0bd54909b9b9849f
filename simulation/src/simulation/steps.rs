//! The steps of a simulation: what happens when the schedule chooses an event.

use super::{LocalEnd, Simulation, Step};
use crate::{
    activities::{self, End},
    engine::{ActivityEnd, Attempt, Committed, RunNumber, TaskOf},
    gateway::gateway,
    schedule::Owner,
    worker::{LocalActivity, Worker},
};

impl Simulation {
    pub(super) async fn take(&mut self, step: Step) {
        self.take_one(step).await;
        let cut = self.world.engine().take_cut();
        let mut facts = self.world.facts();
        facts.run_is_cut(cut);
        let broken = self.promise.and_then(|promise| promise(&facts));
        facts.violations.extend(broken);
        let mut promised = std::mem::take(&mut facts.promises.violations);
        facts.violations.append(&mut promised);
    }

    async fn take_one(&mut self, step: Step) {
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
                self.give_up(attempt);
            }
            Step::Kill(worker) => self.kill(worker),
            Step::KillGateway(number) => self.kill_gateway(number),
            Step::Freeze(worker) => {
                self.tell(format!("worker {worker}: stands still"));
                self.world.schedule.freeze(Owner::Worker(worker));
            }
            Step::Wake(worker) => {
                self.tell(format!("worker {worker}: wakes"));
                self.world.schedule.wake(Owner::Worker(worker));
            }
            Step::Look(number) => self.look(number).await,
            Step::LookAtLeases(number) => self.look_at_leases(number).await,
            Step::Turn(execution_id) => self.turn_to(execution_id).await,
            Step::Arrive(index) => {
                self.tell("the engine: a late call arrives");
                self.world.arrive(index);
            }
            Step::Start => {
                let number = self.next_process;
                self.next_process += 1;
                self.tell(format!("worker {number}: starts"));
                self.workers.insert(number, Worker::default());
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

    fn kill(&mut self, worker: usize) {
        self.tell(format!("worker {worker}: dies"));
        self.world.schedule.kill(Owner::Worker(worker));
        self.local_ends
            .borrow_mut()
            .retain(|end| end.worker != worker);
        self.workers.remove(&worker);
    }

    /// Kills a gateway with its requests, and starts another gateway.
    fn kill_gateway(&mut self, number: usize) {
        self.tell(format!("gateway {number}: dies, and another one starts"));
        self.world.schedule.kill(Owner::Gateway(number));
        if let Some(dead) = self.gateways.get_mut(number) {
            *dead = gateway(&self.world);
        }
    }

    /// Gives an attempt up. A call of the attempt may be paid for nothing.
    fn give_up(&self, attempt: Attempt) {
        self.world.facts().call_is_cut(attempt);
        self.world.engine().retry_activity(attempt);
    }

    pub(super) fn tell(&self, line: impl Into<String>) {
        self.world.schedule.tell(line);
    }

    fn worker(&mut self, number: usize) -> Option<&mut Worker> {
        self.workers.get_mut(&number)
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
        let asked = done.names().join(", ");
        let committed = self.world.engine().complete_task(run, task, done);
        self.tell(format!(
            "worker {number}: completes a task of run {run} with [{asked}]: {committed:?}"
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
}
