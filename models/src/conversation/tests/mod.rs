//! No provider refuses a conversation, whatever happened in it and whichever models wrote it.

mod random;

use proptest::{prelude::*, test_runner::RngAlgorithm};
use serde_json::Value;

use self::random::PROFILES;
use super::*;
use crate::{
    profile::ProfileSettings, provider::ProviderKind::OpenAiResponses, refused, responses, wire,
};

/// The conversations of a test run, unless `PROPTEST_CASES` asks for more: `make verify` runs 10,000.
const CASES: u32 = 1_000;

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
        let bodies = bodies(
            &request,
            &Profile::of(kind, host, model, ProfileSettings::default()),
        );
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
