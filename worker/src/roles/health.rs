//! `everturn health`: asks a running process whether the process is ready, for probes of containers and scripts. The image
//! has no shell and no HTTP client.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use reqwest::{Client, Url};

use crate::cli::HealthOptions;

/// The longest wait for the answer. A gateway asks its database for 2 s at the most.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The most characters of an answer that the error shows.
const MAX_SHOWN: usize = 200;

/// Succeeds when `/readyz` of the process answers 200.
pub async fn run(options: HealthOptions) -> anyhow::Result<ExitCode> {
    let url = readiness(options.url)?;
    let client = Client::builder().timeout(TIMEOUT).no_proxy().build()?;
    let answer = client.get(url.clone()).send().await;
    let answer = answer.with_context(|| format!("{url} does not answer"))?;
    let status = answer.status();
    if !status.is_success() {
        let text = answer.text().await.unwrap_or_default();
        let shown: String = text.chars().take(MAX_SHOWN).collect();
        bail!("{url} is not ready: {status} {shown}");
    }
    println!("{url} is ready");
    Ok(ExitCode::SUCCESS)
}

/// Adds `/readyz` to an address without a path.
fn readiness(mut url: Url) -> anyhow::Result<Url> {
    if url.cannot_be_a_base() || !["http", "https"].contains(&url.scheme()) {
        bail!("{url} is no address of a process; write an address like http://127.0.0.1:8080");
    }
    if url.path() == "/" {
        url.set_path("/readyz");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_is_asked_for_its_readiness() {
        for (given, asked) in [
            ("http://127.0.0.1:9090", "http://127.0.0.1:9090/readyz"),
            (
                "https://agents.example.com/livez",
                "https://agents.example.com/livez",
            ),
        ] {
            let url = readiness(given.parse().unwrap()).unwrap();
            assert_eq!(url.as_str(), asked);
        }
        let error = readiness("localhost:8080".parse().unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("http://127.0.0.1:8080"),
            "{error}"
        );
    }
}
