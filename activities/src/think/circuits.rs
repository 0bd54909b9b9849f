//! Circuits: a model that has failed gets no calls for a while. The circuits are in memory alone, and every worker has
//! its own.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_telemetry::turns;
use lru::LruCache;
use tokio::time::Instant;

use super::model_name::ModelName;

/// The most models with an open circuit: more than a configuration has.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// The circuits of the models in chains. After a failure, the circuit of the model is open for a while: calls go to
/// other models. Then a single call tries the model, and a success closes the circuit.
#[derive(Debug, Clone)]
pub(super) struct Circuits {
    open_for: Duration,
    open: Arc<Mutex<LruCache<ModelName, OpenCircuit>>>,
}

#[derive(Debug, Clone, Copy)]
struct OpenCircuit {
    until: Instant,
    /// True while a call tries the model.
    is_tried: bool,
}

/// The call that tries a model after its circuit was open. When the trial is dropped, another call may try.
#[derive(Debug)]
pub(super) struct Trial {
    circuits: Circuits,
    model: ModelName,
}

impl Circuits {
    /// Makes closed circuits. `open_for` is the time for which a circuit stays open after its model's failure.
    pub(super) fn new(open_for: Duration) -> Self {
        Self {
            open_for,
            open: Arc::new(Mutex::new(LruCache::new(MAX_KNOWN))),
        }
    }

    /// Returns the position of the first model that may be called, and the trial if the call is a trial. When no model
    /// may be called, chooses the model whose circuit closes first. `None`: the list has no models.
    pub(super) fn choose(&self, models: &[(u32, ModelName)]) -> Option<(u32, Option<Trial>)> {
        let mut open = self.lock();
        let now = Instant::now();
        for (position, model) in models {
            match open.peek_mut(model) {
                None => return Some((*position, None)),
                Some(circuit) if circuit.until <= now && !circuit.is_tried => {
                    circuit.is_tried = true;
                    let trial = Trial {
                        circuits: self.clone(),
                        model: model.clone(),
                    };
                    return Some((*position, Some(trial)));
                }
                Some(_) => {}
            }
        }
        let until = |model| open.peek(model).map(|circuit| circuit.until);
        let first = models.iter().min_by_key(|(_, model)| until(model));
        first.map(|(position, _)| (*position, None))
    }

    /// Opens the circuit of a model, because the model has failed.
    pub(super) fn open(&self, model: &ModelName) {
        let circuit = OpenCircuit {
            until: Instant::now() + self.open_for,
            is_tried: false,
        };
        self.lock().put(model.clone(), circuit);
        turns::circuit_open(&model.provider, &model.model, true);
    }

    /// Closes the circuit of a model, because the model has answered.
    pub(super) fn close(&self, model: &ModelName) {
        if self.lock().pop(model).is_some() {
            turns::circuit_open(&model.provider, &model.model, false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ModelName, OpenCircuit>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(circuit) = self.circuits.lock().peek_mut(&self.model) {
            circuit.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const OPEN_FOR: Duration = Duration::from_mins(1);

    fn models(names: &[&str]) -> Vec<(u32, ModelName)> {
        let name = |model: &&str| ModelName {
            provider: "p".to_owned(),
            model: (*model).to_owned(),
        };
        (0..).zip(names.iter().map(name)).collect()
    }

    fn chosen(circuits: &Circuits, models: &[(u32, ModelName)]) -> (u32, bool) {
        let (position, trial) = circuits.choose(models).unwrap();
        (position, trial.is_some())
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_failed_is_left_alone_for_a_while() {
        let circuits = Circuits::new(OPEN_FOR);
        let models = models(&["first", "second"]);
        assert_eq!(chosen(&circuits, &models), (0, false));
        circuits.open(&models[0].1);
        assert_eq!(chosen(&circuits, &models), (1, false));
        advance(OPEN_FOR).await;
        assert_eq!(chosen(&circuits, &models), (0, true));
        circuits.close(&models[0].1);
        assert_eq!(chosen(&circuits, &models), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_tries_a_model_and_its_failure_opens_the_circuit_again() {
        let circuits = Circuits::new(OPEN_FOR);
        let models = models(&["first", "second"]);
        circuits.open(&models[0].1);
        advance(OPEN_FOR).await;
        let trial = circuits.choose(&models).unwrap();
        assert!(trial.1.is_some());
        assert_eq!(chosen(&circuits, &models), (1, false), "one call tries it");
        // A trial that was cancelled says nothing about the model.
        drop(trial);
        let trial = circuits.choose(&models).unwrap();
        assert!(trial.1.is_some());
        circuits.open(&models[0].1);
        drop(trial);
        assert_eq!(chosen(&circuits, &models), (1, false));
        advance(OPEN_FOR).await;
        assert_eq!(chosen(&circuits, &models), (0, true));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_are_open_the_one_that_closes_first_is_asked() {
        let circuits = Circuits::new(OPEN_FOR);
        let models = models(&["first", "second"]);
        circuits.open(&models[1].1);
        advance(OPEN_FOR / 2).await;
        circuits.open(&models[0].1);
        assert_eq!(chosen(&circuits, &models), (1, false));
        assert!(circuits.choose(&[]).is_none());
    }
}
