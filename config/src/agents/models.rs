//! `models` of `[agents.NAME]`: the models that messages may choose instead of the agent's own model.

use std::collections::BTreeSet;

use everturn_models::{ProviderKind, Providers};
use everturn_proto::turn::FallbackModel;
use toml::Spanned;

use crate::{
    checker::Checker,
    models::{Models, parts_of_name},
    providers,
    settings::DEMO_PROVIDER,
};

/// The limit exists because each model has a definition of its own in the memory of a worker, and a list of models is for
/// a person to choose from.
const MAX_MODELS: usize = 32;

/// The agent's own model, which answers without a choice.
pub(super) struct OwnModel<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) kind: ProviderKind,
}

/// Checks the models of an agent. The list may contain the agent's own model, which each message may choose anyway.
/// `parameters` checks whether a provider's kind supports the agent's parameters; the kind of the agent's own provider
/// does.
pub(super) fn checked(
    check: &mut Checker<'_>,
    written: &[Spanned<String>],
    known: (&Models, &Providers),
    own: &OwnModel<'_>,
    parameters: impl Fn(&mut Checker<'_>, ProviderKind),
) -> Vec<FallbackModel> {
    if let Some(first) = written.get(MAX_MODELS) {
        check.wrong(first, format!("`models` has at most {MAX_MODELS} models"));
    }
    let mut names = BTreeSet::new();
    let is_new = |check: &mut Checker<'_>, written: &Spanned<String>| {
        let is_new = names.insert(written.get_ref().clone());
        if !is_new {
            check.named_twice(written, "model", written.get_ref());
        }
        is_new
    };
    let mut models = models_of(check, written, known, own.kind, is_new, parameters);
    models.retain(|model| model.provider != own.provider || model.model != own.model);
    models
}

/// Returns the models of the names that `is_new` accepts. `parameters` is asked once for each kind other than `own_kind`.
pub(super) fn models_of(
    check: &mut Checker<'_>,
    written: &[Spanned<String>],
    known: (&Models, &Providers),
    own_kind: ProviderKind,
    mut is_new: impl FnMut(&mut Checker<'_>, &Spanned<String>) -> bool,
    parameters: impl Fn(&mut Checker<'_>, ProviderKind),
) -> Vec<FallbackModel> {
    let mut kinds = vec![own_kind];
    let mut models = Vec::new();
    for written in written {
        if !is_new(check, written) {
            continue;
        }
        let Some((model, kind)) = model_of(check, written, known) else {
            continue;
        };
        if !kinds.contains(&kind) {
            parameters(check, kind);
            kinds.push(kind);
        }
        models.push(model);
    }
    models
}

/// Returns a model and the kind of its provider.
fn model_of(
    check: &mut Checker<'_>,
    written: &Spanned<String>,
    (models, providers): (&Models, &Providers),
) -> Option<(FallbackModel, ProviderKind)> {
    let (provider, model) = parts_of_name(check, written)?;
    let found = providers.get(provider);
    if found.is_none() && provider != DEMO_PROVIDER {
        providers::unknown(check, written, providers, provider);
        return None;
    }
    let known = models.of(provider, model);
    let model = FallbackModel {
        provider: provider.to_owned(),
        model: model.to_owned(),
        context_window: known.context_window,
        prices: known.prices,
        assumed_output_tokens: known.assumed_output_tokens,
        no_images: known.no_images,
        no_pdfs: known.no_pdfs,
    };
    // The demo model is compatible with OpenAI.
    let kind = found.map_or(ProviderKind::OpenAi, |provider| provider.kind);
    Some((model, kind))
}
