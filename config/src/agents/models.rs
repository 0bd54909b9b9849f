//! `models` of `[agents.NAME]`: the models that messages may choose instead of the agent's own model.

use std::collections::BTreeSet;

use everturn_models::{ProviderKind, Providers, signer};
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
    let own_name = signer(own.provider, own.model);
    let mut kinds = vec![own.kind];
    let mut names = BTreeSet::new();
    let mut models = Vec::new();
    for written in written {
        let name = written.get_ref();
        if !names.insert(name) {
            check.named_twice(written, "model", name);
            continue;
        }
        let Some((model, kind)) = model_of(check, written, known) else {
            continue;
        };
        if *name == own_name {
            continue;
        }
        if !kinds.contains(&kind) {
            parameters(check, kind);
            kinds.push(kind);
        }
        models.push(model);
    }
    models
}

/// Returns a model and the kind of its provider.
pub(super) fn model_of(
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
