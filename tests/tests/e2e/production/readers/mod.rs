//! Readers that are cut after any byte and come back to any gateway, while gateways and workers are killed and Redis is
//! flushed (invariant 7, fenced deltas; invariant 8, a cursor never expires). Each assembles exactly what a reader gets
//! that is never cut.
//!
//! Many conversations run at the same time, one for each seed, on the same processes; some are cancelled.
//! `EVERTURN_SEED=7` runs only the conversation of seed 7. The processes are then killed at other moments.

mod script;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_proto::words::EventType;
use everturn_tests::{
    model::{Model, Request},
    random::Random,
    reader::{
        CursorIn, Cut, Left, Reader, View,
        cut::CutPlaces,
        view::{ShownText, TextKey},
    },
    stack::{Process, Stack},
    wait,
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use self::script::{Script, is_cancelled, turns};

/// Number of conversations.
const SEEDS: u64 = 200;

/// Number of conversations that run at once. More would only wait for one another on a small machine.
const AT_ONCE: usize = 40;

/// Number of gateways. The first is never killed, because the readers that are never cut use it.
const GATEWAYS: usize = 3;

/// A step has six tries, and each kill may end one of them.
const MAX_WORKER_KILLS: usize = 4;

/// Largest number of bytes of a reader's first connections. When a connection makes no progress, the next may have
/// more.
const FIRST_LIMIT: usize = 1024;
const MAX_FIRST_LIMIT: usize = 4 * 1024;
const MAX_LIMIT: usize = 1024 * 1024;

/// Time limit of one conversation, from its first message to its end. It is far more than a slow machine needs.
const SEED_LIMIT: Duration = Duration::from_mins(5);

/// Everything that the conversations share.
struct Run {
    stack: Stack,
    script: Script,
    http: reqwest::Client,
    /// Number of connections that were cut so far. The processes are killed at certain numbers of cuts.
    cuts: watch::Sender<usize>,
}

/// What was seen in a conversation.
#[derive(Debug, Default)]
struct Outcome {
    places: CutPlaces,
    /// Number of texts that the reader that is cut saw before their event came.
    compared: usize,
    /// Number of texts of which the reader that is never cut saw more than one try.
    retried: usize,
}

/// A fault that the test causes.
#[derive(Debug, Clone, Copy)]
enum Harm {
    KillGateway,
    KillWorker,
    FlushRedis,
}

/// The faults, which are caused one after the other, again and again.
const HARMS: [Harm; 5] = [
    Harm::FlushRedis,
    Harm::KillGateway,
    Harm::FlushRedis,
    Harm::KillWorker,
    Harm::KillGateway,
];

/// Counts the faults that were caused.
#[derive(Debug, Default)]
struct Harms {
    gateways_killed: usize,
    workers_killed: usize,
    redis_flushed: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_are_cut_see_what_others_see() {
    let script = Script::default();
    let says = script.clone();
    let model = Model::start(move |request: &Request| says.reply(request)).await;
    let stack = Stack::breakable(model).await.with_gateways(GATEWAYS);
    let _safe = stack.gateway_on(0, &[]).await;
    let mut gateways = Vec::new();
    for number in 1..GATEWAYS {
        gateways.push(stack.gateway_on(number, &[]).await);
    }
    let workers = [(); 2].map(|()| stack.spawn(&["worker"], "worker", &[]));
    let arena = Arc::new(Run {
        stack,
        script,
        http: reqwest::Client::new(),
        cuts: watch::Sender::new(0),
    });

    let one: Option<u64> = std::env::var("EVERTURN_SEED")
        .ok()
        .map(|seed| seed.parse().unwrap());
    let seeds: Vec<u64> = one.map_or_else(|| (0..SEEDS).collect(), |seed| vec![seed]);
    let begun = Instant::now();
    let mut harms = Harms::default();
    let ended = tokio::select! {
        ended = run(&arena, &seeds) => ended,
        () = harm(&arena, seeds.len(), gateways, workers.into(), &mut harms) => unreachable!(),
    };
    let (all, number) = (outcomes(ended, &harms), seeds.len());
    println!(
        "{number} seeds in {:?}: {all:?}, {harms:?}",
        begun.elapsed()
    );
    if one.is_none() {
        enough_was_seen(number, &all, &harms);
    }
}

/// Adds up the outcomes of all conversations. Panics when one failed.
fn outcomes(ended: Vec<(u64, Result<Outcome, String>)>, harms: &Harms) -> Outcome {
    let number = ended.len();
    let mut failed = 0;
    let mut all = Outcome::default();
    for (seed, outcome) in ended {
        match outcome {
            Ok(outcome) => {
                all.places += outcome.places;
                all.compared += outcome.compared;
                all.retried += outcome.retried;
            }
            Err(error) => {
                failed += 1;
                eprintln!("EVERTURN_SEED={seed}: {error}");
            }
        }
    }
    assert!(
        failed == 0,
        "{failed} of {number} seeds failed, after {harms:?}"
    );
    all
}

/// Asserts that readers were cut at every kind of place, and that every kind of fault was caused. Otherwise the test
/// would show nothing.
fn enough_was_seen(seeds: usize, all: &Outcome, harms: &Harms) {
    let places = &all.places;
    assert!(
        places.cuts > 2 * seeds && places.in_character > 0 && places.behind_id > 0,
        "{places:?}"
    );
    assert!(
        harms.gateways_killed > 1 && harms.workers_killed > 0,
        "{harms:?}"
    );
    assert!(
        harms.redis_flushed > 1 && places.at_text_end > 0,
        "{harms:?}, {places:?}"
    );
    assert!(all.compared > seeds && all.retried > 0, "{all:?}");
}

/// Runs the conversation of every seed, at most [`AT_ONCE`] at a time.
async fn run(arena: &Arc<Run>, seeds: &[u64]) -> Vec<(u64, Result<Outcome, String>)> {
    let turnstile = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for seed in seeds.iter().copied() {
        let (arena, turnstile) = (Arc::clone(arena), Arc::clone(&turnstile));
        running.spawn(async move {
            let _permit = turnstile.acquire().await;
            (seed, arena.conversation(seed).await)
        });
    }
    running.join_all().await
}

/// Causes faults, the next one each time as many connections were cut as half of the seeds. Never returns.
async fn harm(
    arena: &Run,
    seeds: usize,
    gateways: Vec<Process>,
    workers: Vec<Process>,
    harms: &mut Harms,
) {
    let stack = &arena.stack;
    let mut cuts = arena.cuts.subscribe();
    let (mut gateways, mut workers) = (gateways, workers);
    for (number, harm) in (1..).zip(HARMS.iter().cycle()) {
        cuts.wait_for(|cuts| *cuts >= number * seeds / 2)
            .await
            .unwrap();
        match harm {
            Harm::KillGateway => {
                // Of the gateways that may be killed, this is the one that has run longest.
                let number = 1 + harms.gateways_killed % gateways.len();
                gateways.remove(0).kill().await;
                gateways.push(stack.gateway_on(number, &[]).await);
                harms.gateways_killed += 1;
            }
            Harm::KillWorker if harms.workers_killed == MAX_WORKER_KILLS => {}
            Harm::KillWorker => {
                workers.remove(0).kill().await;
                workers.push(stack.spawn(&["worker"], "worker", &[]));
                harms.workers_killed += 1;
            }
            Harm::FlushRedis => {
                stack.redis().flush().await;
                harms.redis_flushed += 1;
            }
        }
    }
}

impl Run {
    /// A conversation with two readers, from its first message to its end.
    async fn conversation(&self, seed: u64) -> Result<Outcome, String> {
        // The gateway that is never killed.
        let client = everturn_client::GatewayClient::new(&self.stack.gateway_url(0)).unwrap();
        let conversation = client
            .create_conversation(None)
            .await
            .map_err(|error| format!("{error:#}"))?;
        let asked = async {
            for turn in 1..=turns(seed) {
                client
                    .submit(&conversation, &format!("seed {seed} turn {turn}"), None)
                    .await?;
            }
            if is_cancelled(seed) {
                wait::until("a tool is asked for", || async {
                    client
                        .last_sequence(&conversation)
                        .await
                        .is_ok_and(|last| last > 2)
                        .then_some(())
                })
                .await;
                client.cancel(&conversation).await?;
            }
            anyhow::Ok(())
        };
        let asked = async { asked.await.map_err(|error| format!("{error:#}")) };
        let all = async {
            tokio::try_join!(
                self.uncut(seed, &conversation),
                self.cut(seed, &conversation),
                asked
            )
        };
        let all = tokio::time::timeout(SEED_LIMIT, all).await;
        let (uncut, (cut, places), ()) =
            all.map_err(|_| format!("{conversation} did not end in {SEED_LIMIT:?}"))??;
        if uncut.events() != cut.events() {
            return Err(format!(
                "the readers differ:\n{:#?}\n{:#?}",
                uncut.events(),
                cut.events()
            ));
        }
        self.compare_with_log(&conversation, &cut).await?;
        let (_, retried) = self
            .compare_texts(seed, &uncut)
            .map_err(|error| format!("never cut: {error}"))?;
        let (compared, _) = self
            .compare_texts(seed, &cut)
            .map_err(|error| format!("cut: {error}"))?;
        Ok(Outcome {
            places,
            compared,
            retried,
        })
    }

    async fn uncut(&self, seed: u64, conversation: &str) -> Result<View, String> {
        let mut reader = Reader::new(&self.http, conversation);
        let is_over = |view: &View| view.turns_ended() == turns(seed);
        let gateway = self.stack.gateway_url(0);
        match reader
            .visit(&gateway, CursorIn::Query, &mut Cut::never(), is_over)
            .await?
        {
            Left::Satisfied => Ok(reader.view),
            left => Err(format!(
                "the gateway cut a reader at event {}: {left:?}",
                reader.view.cursor()
            )),
        }
    }

    async fn cut(&self, seed: u64, conversation: &str) -> Result<(View, CutPlaces), String> {
        let mut random = Random::of(&[seed]);
        let first_limit = FIRST_LIMIT + random.below(MAX_FIRST_LIMIT - FIRST_LIMIT);
        let (mut gateway, mut limit, mut places) = (0, first_limit, CutPlaces::default());
        let mut reader = Reader::new(&self.http, conversation);
        loop {
            gateway = (gateway + 1 + random.below(GATEWAYS - 1)) % GATEWAYS;
            let cursor_in = *random.pick(&[CursorIn::Query, CursorIn::Header]);
            let mut cut = Cut::within(limit, &mut random);
            let before = reader.view.cursor();
            let is_over = |view: &View| view.turns_ended() == turns(seed);
            let url = self.stack.gateway_url(gateway);
            match reader.visit(&url, cursor_in, &mut cut, is_over).await? {
                Left::Satisfied => return Ok((reader.view, places)),
                Left::Cut => self.cuts.send_modify(|cuts| *cuts += 1),
                // The gateway was killed, or does not listen yet. The reader goes to the next one.
                Left::Ended | Left::Refused => {}
            }
            places += cut.places();
            limit = if reader.view.cursor() > before {
                first_limit
            } else {
                MAX_LIMIT.min(2 * limit)
            };
        }
    }

    /// Checks that the events of the reader are those of the store.
    async fn compare_with_log(&self, conversation: &str, view: &View) -> Result<(), String> {
        let url = format!(
            "{}/api/v1/agent/conversations/{conversation}/events?limit=1000",
            self.stack.gateway_url(0)
        );
        let page: Value = self
            .http
            .get(url)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let logged = page["events"].as_array().unwrap();
        let is_same = |(event, shown): (&Value, &Value)| {
            let fields = event["event_data"].as_object().unwrap();
            shown["sequence_number"] == event["sequence_number"]
                && shown["type"] == event["event_type"]
                && fields.iter().all(|(name, value)| shown[name] == *value)
        };
        let is_all =
            logged.len() == view.events().len() && logged.iter().zip(view.events()).all(is_same);
        if is_all {
            Ok(())
        } else {
            Err(format!(
                "the log differs:\n{logged:#?}\n{:#?}",
                view.events()
            ))
        }
    }

    /// Compares what was shown of each text with what the model said, and with the event that sealed the text, which
    /// has at least what was shown. Returns how many texts were seen of the try that was saved, and how many were seen
    /// in more than one try.
    fn compare_texts(&self, seed: u64, view: &View) -> Result<(usize, usize), String> {
        let (mut turn, mut compared, mut retried) = (0, 0, 0);
        for event in view.events() {
            let sealed = match EventType::from(event["type"].as_str().unwrap()) {
                EventType::UserMessage => {
                    turn += 1;
                    continue;
                }
                EventType::Thought => event["thought"].as_str().unwrap(),
                EventType::AssistantMessage => event["content"].as_str().unwrap(),
                _ => continue,
            };
            let step = event["step"].as_u64().unwrap();
            let agent_execution_id = event["agent_execution_id"].as_str().unwrap().to_owned();
            let tries = self
                .script
                .texts((seed, turn, usize::try_from(step).unwrap()));
            let shown: Vec<_> = view
                .shown(&TextKey {
                    agent_execution_id,
                    step,
                    part: "text".to_owned(),
                })
                .into_iter()
                .flatten()
                .collect();
            let shown: Vec<_> = shown
                .into_iter()
                .map(|(_, shown)| shown)
                .filter(|shown| !shown.text.is_empty())
                .collect();
            let is_saved = |said: &str| {
                if event["partial"] == true {
                    said.starts_with(sealed)
                } else {
                    said == sealed
                }
            };
            let saved: Vec<_> = (0..tries.len())
                .filter(|at| is_saved(&tries[*at]))
                .collect();
            let seen = tries_of(&shown, &tries)
                .map_err(|error| format!("turn {turn}, step {step}: {error}"))?;
            let is_more = |(shown, at): (&&ShownText, &usize)| {
                saved == [*at] && !sealed.starts_with(&shown.text)
            };
            if saved.is_empty() || shown.iter().zip(&seen).any(is_more) {
                return Err(format!(
                    "turn {turn}, step {step} saved {sealed:?}; shown was {shown:?}; said was {tries:?}"
                ));
            }
            compared += usize::from(saved.iter().any(|at| seen.contains(at)));
            retried += usize::from(seen.len() > 1);
        }
        Ok((compared, retried))
    }
}

/// Finds the try that each shown text is of. The texts are in the order of their generations, and each is the text of
/// its try, or the beginning of it.
fn tries_of(shown: &[&ShownText], tries: &[String]) -> Result<Vec<usize>, String> {
    let mut seen = Vec::new();
    let mut next = 0;
    for ShownText { text, is_ended } in shown.iter().copied() {
        let is_its = |said: &String| {
            if *is_ended {
                said == text
            } else {
                said.starts_with(text.as_str())
            }
        };
        let found = tries.iter().skip(next).position(is_its);
        let found = found
            .ok_or_else(|| format!("no try said this (ended: {is_ended}): {text:?}\n{tries:#?}"))?;
        seen.push(next + found);
        next += found + 1;
    }
    Ok(seen)
}
