//! Durations such as `"30s"`, `"24h"` or `"1h 30m"`. Use as `#[serde(with = "service::config::duration")]`.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Reads a duration such as `"24h"`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text)
        .map_err(|error| D::Error::custom(format!("not a duration such as \"30s\" or \"24h\": {error}")))
}

/// Writes a duration in the form [`deserialize`] reads.
pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*duration))
}

/// Lists of durations, such as `["0s", "5m"]`. Use as `#[serde(with = "service::config::duration::list")]`.
pub mod list {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, de::Error as _};

    /// Reads a list of durations. The error names the first text in it that isn't one.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let read = |text: &String| {
            humantime::parse_duration(text).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
        };
        texts.iter().map(read).collect()
    }
}
