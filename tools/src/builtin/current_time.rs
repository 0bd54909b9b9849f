//! `current_time`: the time in any time zone.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use everturn_proto::words::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{context::ToolContext, error::ToolError, typed::TypedTool};

/// The most suggestions for an unknown zone.
const MAX_SUGGESTIONS: usize = 5;
/// The longest accepted name of a zone. The longest IANA name has 32 bytes.
const MAX_ZONE_BYTES: usize = 64;

/// The tool `current_time`.
pub struct CurrentTime {
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
}

/// The arguments of the tool.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// IANA name, for example Asia/Tokyo or Europe/Berlin. UTC when left out.
    #[schemars(length(max = MAX_ZONE_BYTES))]
    time_zone: Option<String>,
}

/// The time in the zone.
#[derive(Serialize)]
pub struct Output {
    time_zone: &'static str,
    time: String,
    weekday: String,
}

impl CurrentTime {
    /// Creates the tool with a given clock.
    pub fn with_clock(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now) }
    }
}

impl Default for CurrentTime {
    /// Creates the tool with the system's clock.
    fn default() -> Self {
        Self::with_clock(Utc::now)
    }
}

impl TypedTool for CurrentTime {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "current_time";
    const DESCRIPTION: &'static str =
        "Tells the date, time and day of the week in a time zone, now.";
    const TITLE: Option<&'static str> = Some("Look up the time in {time_zone}");
    const EFFECT: Effect = Effect::Read;
    const INLINE: bool = true;

    async fn run(&self, _: ToolContext, input: Input) -> Result<Output, ToolError> {
        let zone = match input.time_zone.as_deref() {
            Some(name) if !name.trim().is_empty() => find(name).map_err(ToolError::Failed)?,
            _ => Tz::UTC,
        };
        let time = (self.now)().with_timezone(&zone);
        Ok(Output {
            time_zone: zone.name(),
            time: time.to_rfc3339_opts(SecondsFormat::Secs, false),
            weekday: time.format("%A").to_string(),
        })
    }
}

/// Returns the zone with this name, ignoring case.
fn find(name: &str) -> Result<Tz, String> {
    let wanted = name.trim().replace(' ', "_");
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

/// Returns zones that contain a word of the wanted name: `tokyo`, `Tokyo, Japan` and `Japan/Tokyo` all find
/// Asia/Tokyo.
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
    use serde_json::{Value, json};

    use super::*;
    use crate::{checked::CheckedTool, testing, typed::typed};

    async fn time_in(input: Value) -> Result<Value, String> {
        let clock = || Utc.with_ymd_and_hms(2026, 7, 31, 20, 30, 5).unwrap();
        let tool = CheckedTool::new(typed(CurrentTime::with_clock(clock))).unwrap();
        testing::call(&tool, input).await.map(|(result, _)| result)
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
        let tool = CurrentTime::default();
        let output = tool.run(testing::context(), Input::default()).await;
        let time: DateTime<Utc> = output.unwrap().time.parse().unwrap();
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
