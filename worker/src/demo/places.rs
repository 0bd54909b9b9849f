//! Places whose time people ask for.

/// Names in lower case, and the IANA zone.
const PLACES: [(&[&str], &str); 45] = [
    (&["amsterdam"], "Europe/Amsterdam"),
    (&["athens"], "Europe/Athens"),
    (&["auckland"], "Pacific/Auckland"),
    (&["bangkok"], "Asia/Bangkok"),
    (&["beijing", "北京"], "Asia/Shanghai"),
    (&["berlin"], "Europe/Berlin"),
    (&["bogota", "bogotá"], "America/Bogota"),
    (&["brussels"], "Europe/Brussels"),
    (&["buenos aires"], "America/Argentina/Buenos_Aires"),
    (&["cairo"], "Africa/Cairo"),
    (&["chicago"], "America/Chicago"),
    (&["delhi", "mumbai", "bangalore", "india"], "Asia/Kolkata"),
    (&["denver"], "America/Denver"),
    (&["dubai"], "Asia/Dubai"),
    (&["dublin"], "Europe/Dublin"),
    (&["helsinki"], "Europe/Helsinki"),
    (&["hong kong"], "Asia/Hong_Kong"),
    (&["honolulu", "hawaii"], "Pacific/Honolulu"),
    (&["istanbul"], "Europe/Istanbul"),
    (&["jakarta"], "Asia/Jakarta"),
    (&["johannesburg"], "Africa/Johannesburg"),
    (&["kathmandu"], "Asia/Kathmandu"),
    (&["lagos"], "Africa/Lagos"),
    (&["lisbon"], "Europe/Lisbon"),
    (&["london"], "Europe/London"),
    (
        &["los angeles", "san francisco", "seattle"],
        "America/Los_Angeles",
    ),
    (&["madrid"], "Europe/Madrid"),
    (&["mexico city"], "America/Mexico_City"),
    (&["moscow"], "Europe/Moscow"),
    (&["nairobi"], "Africa/Nairobi"),
    (&["new york", "boston", "washington"], "America/New_York"),
    (&["oslo"], "Europe/Oslo"),
    (&["paris"], "Europe/Paris"),
    (&["prague"], "Europe/Prague"),
    (&["rome"], "Europe/Rome"),
    (&["sao paulo", "são paulo"], "America/Sao_Paulo"),
    (&["seoul"], "Asia/Seoul"),
    (&["shanghai", "上海"], "Asia/Shanghai"),
    (&["singapore"], "Asia/Singapore"),
    (&["stockholm"], "Europe/Stockholm"),
    (&["sydney", "melbourne"], "Australia/Sydney"),
    (&["tokyo", "japan", "東京"], "Asia/Tokyo"),
    (&["toronto"], "America/Toronto"),
    (&["vienna"], "Europe/Vienna"),
    (&["zurich", "zürich"], "Europe/Zurich"),
];

const AREAS: [&str; 11] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Etc",
    "Europe",
    "Indian",
    "Pacific",
];

/// A time that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// As the message calls it.
    pub(super) name: String,
    /// What `current_time` is asked for: usually an IANA zone.
    pub(super) zone: String,
}

/// The places whose time a message asks for, in its order, each once.
pub(super) fn find(message: &str) -> Vec<Place> {
    let mut found = zones(message);
    let lower = message.to_lowercase();
    if ["time", "clock", "what day"]
        .iter()
        .any(|word| has_word(&lower, word))
    {
        for (names, zone) in PLACES {
            for name in names {
                if let Some(at) = word_at(&lower, name) {
                    found.push((
                        at,
                        Place {
                            name: title(name),
                            zone: zone.to_owned(),
                        },
                    ));
                }
            }
        }
        if found.is_empty() {
            found.extend(unknown(&lower));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut places: Vec<Place> = Vec::new();
    for (_, place) in found {
        if !places.iter().any(|known| known.zone == place.zone) {
            places.push(place);
        }
    }
    places
}

/// IANA names written out, such as Europe/Berlin.
fn zones(message: &str) -> Vec<(usize, Place)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    let mut found = Vec::new();
    for word in message
        .split(|c: char| !is_part(c))
        .filter(|word| !word.is_empty())
    {
        let is_zone = word
            .split_once('/')
            .is_some_and(|(area, city)| AREAS.contains(&area) && !city.is_empty());
        if is_zone && let Some(at) = message.find(word) {
            found.push((
                at,
                Place {
                    name: word.to_owned(),
                    zone: word.to_owned(),
                },
            ));
        }
    }
    found
}

/// `time in Atlantis`: nobody here knows it, and the tool will say so. Without a place: UTC.
fn unknown(lower: &str) -> Option<(usize, Place)> {
    for ask in ["time is it in ", "time in ", "time at ", "clock in "] {
        if let Some(at) = lower.find(ask) {
            let rest = &lower[at + ask.len()..];
            let name = rest
                .split(|c: char| !(c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')))
                .next()?;
            let name: String = title(name.split(" and ").next()?.trim())
                .chars()
                .take(40)
                .collect();
            return (!name.is_empty()).then(|| {
                (
                    at,
                    Place {
                        zone: name.clone(),
                        name,
                    },
                )
            });
        }
    }
    let asks = ["what time", "the time", "current time", "time is it"]
        .into_iter()
        .find_map(|ask| lower.find(ask));
    asks.map(|at| {
        (
            at,
            Place {
                name: "UTC".to_owned(),
                zone: "UTC".to_owned(),
            },
        )
    })
}

fn has_word(text: &str, word: &str) -> bool {
    word_at(text, word).is_some()
}

/// Where `word` stands in `text` as a word of its own.
pub(super) fn word_at(text: &str, word: &str) -> Option<usize> {
    // Scripts without spaces have no words of their own; there, everywhere is good.
    let is_letter = |c: char| c.is_alphanumeric() && !is_ideograph(c);
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back().is_some_and(is_letter);
        let after = text[at + word.len()..]
            .chars()
            .next()
            .is_some_and(is_letter);
        word.chars().all(is_ideograph) || !(before || after)
    })
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')
}

/// Each word with a capital.
fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| {
            format!("{}{}", first.to_uppercase(), chars.as_str())
        })
    };
    name.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zones_of(message: &str) -> Vec<String> {
        find(message).into_iter().map(|place| place.zone).collect()
    }

    #[test]
    fn places_come_in_the_order_of_the_message() {
        assert_eq!(zones_of("What time is it in Tokyo?"), ["Asia/Tokyo"]);
        assert_eq!(
            zones_of("time in New York, são paulo and Tokyo (Japan)"),
            ["America/New_York", "America/Sao_Paulo", "Asia/Tokyo"]
        );
        assert_eq!(
            zones_of("Compare Europe/Berlin with Etc/GMT+5."),
            ["Europe/Berlin", "Etc/GMT+5"]
        );
        assert_eq!(zones_of("time in 東京は?"), ["Asia/Tokyo"]);
    }

    #[test]
    fn other_messages_ask_for_no_time() {
        for message in [
            "I love Paris",
            "Sometimes in Rome",
            "romeo has no time",
            "and/or",
            "a/b",
            "3 times 4",
        ] {
            assert_eq!(zones_of(message), [""; 0], "{message}");
        }
    }

    #[test]
    fn without_a_known_place() {
        assert_eq!(zones_of("What time is it?"), ["UTC"]);
        assert_eq!(
            zones_of("what time is it in atlantis and so on?"),
            ["Atlantis"]
        );
    }

    proptest! {
        #[test]
        fn any_message_can_be_read(message in "(\\PC|time|in| |İ|Tokyo){0,40}") {
            find(&message);
        }
    }

    #[test]
    fn every_zone_is_one_that_the_tool_knows() {
        use everturn_activities::tools::{Tool as _, builtin::CurrentTime};
        // The description names the tool's own source of zones; the names are checked by asking it.
        let tool = CurrentTime::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for (_, zone) in PLACES {
            let context = crate::demo::tests::tool_context();
            let input = everturn_proto::Json::of(&serde_json::json!({"time_zone": zone}));
            assert!(runtime.block_on(tool.run(context, input)).is_ok(), "{zone}");
        }
    }
}
