//! `[agents.NAME.fallback]`: the models that answer when the agent's own model cannot.

use std::collections::BTreeSet;

use everturn_models::{ProviderKind, Providers, signer};
use everturn_proto::{turn::Fallback, words::FailureCode};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    checker::Checker,
    forms::{Number, Written},
    models::Models,
};

use super::models::{OwnModel, models_of};

const MAX_MODELS: usize = 5;
/// The failures before the next model is asked. A step makes at most six billable calls over all models. With more
/// than five failures, the step would never reach the second model.
type After = Number<1, 5>;
const DEFAULT_AFTER: u32 = 2;
/// Failures that another model may not have, and that waiting does not repair.
const AT_ONCE_ON: [FailureCode; 5] = [
    FailureCode::LlmContextTooLong,
    FailureCode::LlmContentPolicy,
    FailureCode::LlmQuotaExceeded,
    FailureCode::LlmUnauthorized,
    FailureCode::LlmNotFound,
];

/// The chain of an agent's models.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FallbackTable {
    models: Spanned<Vec<Spanned<String>>>,
    after: Option<Written<After>>,
    at_once_on: Option<Vec<Spanned<String>>>,
}

impl FallbackTable {
    /// Checks the chain. `parameters` checks whether a provider's kind supports the agent's parameters; the kind of
    /// the agent's own provider does.
    pub(super) fn check(
        &self,
        check: &mut Checker<'_>,
        models: &Models,
        providers: &Providers,
        own: &OwnModel<'_>,
        parameters: impl Fn(&mut Checker<'_>, ProviderKind),
    ) -> Fallback {
        if !(1..=MAX_MODELS).contains(&self.models.get_ref().len()) {
            check.wrong(
                &self.models,
                format!("`models` of a fallback has 1 to {MAX_MODELS} models"),
            );
        }
        let mut known = BTreeSet::from([signer(own.provider, own.model)]);
        let is_new = |check: &mut Checker<'_>, written: &Spanned<String>| {
            let name = written.get_ref();
            let is_new = known.insert(name.clone());
            if !is_new {
                check.wrong(
                    written,
                    format!("the agent has model `{name}` already; name another model"),
                );
            }
            is_new
        };
        let named = self.models.get_ref();
        Fallback {
            models: models_of(
                check,
                named,
                (models, providers),
                own.kind,
                is_new,
                parameters,
            ),
            after: check.value_or(&self.after, DEFAULT_AFTER),
            at_once_on: self.at_once_on(check),
        }
    }

    /// Returns the failure codes after which a model is given up at once.
    fn at_once_on(&self, check: &mut Checker<'_>) -> Vec<String> {
        let Some(written) = &self.at_once_on else {
            return AT_ONCE_ON.map(String::from).into();
        };
        let mut codes = Vec::new();
        for code in written {
            if !FailureCode::from(code.get_ref().as_str()).is_of_a_model() {
                let known = FailureCode::ALL.iter().filter(|code| code.is_of_a_model());
                let known = known.map(FailureCode::as_str);
                check.unknown(code, "failure of models", code.get_ref(), known);
            } else if codes.contains(code.get_ref()) {
                check.named_twice(code, "failure", code.get_ref());
            } else {
                codes.push(code.get_ref().clone());
            }
        }
        codes
    }
}
