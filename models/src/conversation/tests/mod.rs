//! No provider refuses a conversation, whatever happened in it and whichever models wrote it.

mod random;

use proptest::{prelude::*, test_runner::RngAlgorithm};
use serde_json::Value;

use super::*;
use crate::{
    provider::ProviderKind::{self, Anthropic, Azure, Gemini, OpenAi, OpenAiResponses},
    refused::{self, Who},
    responses, wire,
};

/// Kind, host and model of every provider with demands of its own.
const PROFILES: [(ProviderKind, &str, &str, Who); 13] = [
    (OpenAi, "api.openai.com", "gpt-4o", Who::OpenAi),
    (OpenAi, "api.openai.com", "gpt-5.1", Who::OpenAi),
    (Azure, "x.openai.azure.com", "gpt-4o", Who::OpenAi),
    (OpenAi, "localhost", "llama-3", Who::Template),
    (OpenAi, "localhost", "deepseek-v3", Who::Template),
    (OpenAi, "localhost", "mistral-small", Who::MistralModel),
    (OpenAi, "api.mistral.ai", "x", Who::Mistral),
    (OpenAi, "api.deepseek.com", "deepseek-v4-pro", Who::DeepSeek),
    (OpenAi, "api.moonshot.ai", "kimi-k2.6", Who::DeepSeek),
    (Anthropic, "api.anthropic.com", "claude", Who::Anthropic),
    (Gemini, "x.googleapis.com", "gemini-2.5-pro", Who::Gemini),
    (Gemini, "x.googleapis.com", "gemini-3-pro", Who::Gemini3),
    (
        OpenAiResponses,
        "api.openai.com",
        "gpt-5.1-x",
        Who::Responses,
    ),
];
/// The conversations of a test run, unless `PROPTEST_CASES` asks for more.
const CASES: u32 = 4_000;

/// The bodies of a request to a provider.
fn bodies(request: &ModelRequest, profile: &Profile) -> Vec<Value> {
    if profile.kind == OpenAiResponses {
        let modes = [true, false].map(|is_background| responses::Mode {
            is_background,
            has_thoughts: true,
        });
        return modes
            .map(|mode| responses::body(request, mode, profile))
            .to_vec();
    }
    vec![serde_json::to_value(wire::body(request, profile)).unwrap()]
}

fn problems(mut request: ModelRequest) -> Vec<String> {
    let mut problems = Vec::new();
    request.provider = "p".to_owned();
    for (kind, host, model, who) in PROFILES {
        request.model = model.to_owned();
        let bodies = bodies(&request, &Profile::of(kind, host, model));
        // A wire without a body of its own.
        for body in bodies.iter().filter(|body| !body.is_null()) {
            let found = refused::problems(who, body);
            problems.extend(
                found
                    .into_iter()
                    .map(|it| format!("{host} {model}: {it}\n{body}")),
            );
        }
    }
    problems
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(CASES),
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_provider_refuses_a_conversation(request in random::requests()) {
        let problems = problems(request);
        prop_assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
