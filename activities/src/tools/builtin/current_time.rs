//! `current_time`: the time in any time zone.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use everturn_proto::Json;
use serde::Deserialize;
use serde_json::json;

use super::read;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// Suggestions for a zone that does not exist.
const MAX_SUGGESTIONS: usize = 5;
/// The longest IANA name has 32 bytes.
const MAX_ZONE_BYTES: usize = 64;

/// The tool `current_time`.
pub struct CurrentTime {
    spec: ToolSpec,
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    time_zone: Option<String>,
}

impl CurrentTime {
    /// The tool, by the system's clock.
    pub fn new() -> Self {
        Self::with_clock(Utc::now)
    }

    /// The tool, by a given clock.
    pub fn with_clock(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "time_zone": {
                    "type": "string",
                    "description": "IANA name, for example Asia/Tokyo or Europe/Berlin. UTC when left out.",
                    "maxLength": MAX_ZONE_BYTES,
                },
            },
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: "current_time".into(),
            description: "Tells the date, time and day of the week in a time zone, now.".into(),
            parameters,
            effect: Effect::Read,
        };
        Self {
            spec,
            now: Arc::new(now),
        }
    }
}

impl Default for CurrentTime {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: ToolContext, input: Json) -> Result<ToolOutput, ToolError> {
        let input: Input = read(&input)?;
        let zone =
            find(input.time_zone.as_deref().unwrap_or_default()).map_err(ToolError::Failed)?;
        let time = (self.now)().with_timezone(&zone);
        Ok(ToolOutput::of(&json!({
            "time_zone": zone.name(),
            "time": time.to_rfc3339_opts(SecondsFormat::Secs, false),
            "weekday": time.format("%A").to_string(),
        })))
    }
}

/// The zone of this name, whatever its case; UTC for no name.
fn find(name: &str) -> Result<Tz, String> {
    let wanted = name.trim().replace(' ', "_");
    if wanted.is_empty() {
        return Ok(Tz::UTC);
    }
    if let Some(zone) = TZ_VARIANTS
        .iter()
        .find(|zone| zone.name().eq_ignore_ascii_case(&wanted))
    {
        return Ok(*zone);
    }
    let suggestions = suggest(&wanted.to_ascii_lowercase());
    let hint = if suggestions.is_empty() {
        "use the IANA name of a zone, for example Europe/Berlin".to_owned()
    } else {
        format!("did you mean {}?", suggestions.join(" or "))
    };
    let shown: String = name.chars().take(MAX_ZONE_BYTES).collect();
    Err(format!("There is no time zone `{shown}`; {hint}"))
}

/// Zones whose name contains a word of the wanted one: `tokyo`, `Tokyo, Japan` and `Japan/Tokyo` all find Asia/Tokyo.
fn suggest(wanted: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for word in std::iter::once(wanted).chain(wanted.split(['/', ',', '(', ')'])) {
        let word = word.trim_matches('_');
        let contains =
            |zone: &&Tz| word.len() >= 3 && zone.name().to_ascii_lowercase().contains(word);
        for zone in TZ_VARIANTS.iter().filter(contains) {
            if found.len() < MAX_SUGGESTIONS && !found.contains(&zone.name()) {
                found.push(zone.name());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;
    use crate::tools::builtin::testing::context;

    async fn time_in(input: serde_json::Value) -> Result<serde_json::Value, String> {
        let tool =
            CurrentTime::with_clock(|| Utc.with_ymd_and_hms(2026, 7, 31, 20, 30, 5).unwrap());
        tool.run(context(), Json::of(&input))
            .await
            .map(|output| output.result.to_value())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn tells_the_time_with_its_offset_and_weekday() {
        assert_eq!(
            time_in(json!({"time_zone": "Asia/Tokyo"})).await.unwrap(),
            json!({"time_zone": "Asia/Tokyo", "time": "2026-08-01T05:30:05+09:00", "weekday": "Saturday"})
        );
        assert_eq!(
            time_in(json!({})).await.unwrap(),
            json!({"time_zone": "UTC", "time": "2026-07-31T20:30:05+00:00", "weekday": "Friday"})
        );
        assert_eq!(
            time_in(json!({"time_zone": "america/new york"}))
                .await
                .unwrap()["time_zone"],
            "America/New_York"
        );
    }

    #[tokio::test]
    async fn an_unknown_zone_comes_with_suggestions() {
        for name in ["Tokyo", "Japan/Tokyo", "Tokyo, Japan"] {
            let message = time_in(json!({"time_zone": name})).await.unwrap_err();
            assert!(
                message.starts_with(&format!("There is no time zone `{name}`; did you mean")),
                "{message}"
            );
            assert!(message.contains("Asia/Tokyo"), "{message}");
        }
        assert_eq!(
            time_in(json!({"time_zone": "Atlantis"})).await.unwrap_err(),
            "There is no time zone `Atlantis`; use the IANA name of a zone, for example Europe/Berlin"
        );
    }

    #[tokio::test]
    async fn by_the_real_clock() {
        let output = CurrentTime::new().run(context(), Json::default()).await;
        // `null` is no object; the registry refuses it before.
        assert!(output.is_err());
        let output = CurrentTime::new()
            .run(context(), Json::of(&json!({"time_zone": "UTC"})))
            .await
            .unwrap();
        let time = output.result.to_value()["time"]
            .as_str()
            .unwrap()
            .parse::<DateTime<Utc>>()
            .unwrap();
        assert!((Utc::now() - time).num_seconds().abs() <= 5);
    }

    proptest! {
        #[test]
        fn any_name_is_a_zone_or_an_error(name in "\\PC{0,80}") {
            if let Err(message) = find(&name) {
                prop_assert!(message.len() < 600);
            }
        }
    }
}
