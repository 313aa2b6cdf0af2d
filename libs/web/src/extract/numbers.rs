//! Deserializers of members: whole numbers in any notation, and null apart from absent.

use serde::{Deserialize, Deserializer};

/// Distinguishes null from an absent member: with `#[serde(default, deserialize_with = "web::present")]`, an
/// `Option<Option<T>>` is `None` if absent and `Some(None)` if null.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(reader).map(Some)
}

/// Deserializes a 64-bit integer in any notation: JSON does not distinguish `1` from `1.0` (RFC 8259, 6).
pub fn whole_number<'de, D: Deserializer<'de>>(reader: D) -> Result<i64, D::Error> {
    whole(&serde_json::Number::deserialize(reader)?)
}

/// Deserializes like [`whole_number`], or null. With `#[serde(default)]` the member may be absent too.
pub fn whole_number_or_null<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<i64>, D::Error> {
    Option::<serde_json::Number>::deserialize(reader)?.map(|number| whole(&number)).transpose()
}

/// Deserializes like [`whole_number_or_null`] and distinguishes null from an absent member like [`present`].
pub fn present_whole_number<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Option<i64>>, D::Error> {
    whole_number_or_null(reader).map(Some)
}

fn whole<E: serde::de::Error>(number: &serde_json::Number) -> Result<i64, E> {
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float of that size holds every whole number exactly"
    )]
    let read = number.as_i64().or_else(|| float().map(|float| float as i64));
    read.ok_or_else(|| E::custom(format!("invalid number: `{number}`, expected a whole one")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_may_have_a_fraction_of_zero() {
        let read = |text: &str| whole_number(&mut serde_json::Deserializer::from_str(text)).ok();
        for (text, number) in
            [("1", 1), ("1.0", 1), ("1e2", 100), ("-3.0", -3), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for text in ["1.5", "1e300", "9223372036854775808", "\"1\"", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
