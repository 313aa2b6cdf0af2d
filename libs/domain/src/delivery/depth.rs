//! The depth of a chain of deliveries, so that webhooks which post to a form's submit address can't call each other forever.
//!
//! Each delivery carries the depth of the submission that caused it plus one. A visitor's submission has none.

/// The header of deliveries. Receivers that pass a delivery on should copy it.
pub const HEADER: &str = "webruntime-depth";
/// Requests of this depth are refused.
pub const MAX: i16 = 5;

/// Reads the values of the header; 0 without one. A number that is too large counts as [`MAX`], and a value that is none as 0.
pub fn parse<'a>(values: impl Iterator<Item = &'a str>) -> i16 {
    values.map(parse_one).max().unwrap_or_default()
}

fn parse_one(value: &str) -> i16 {
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.parse::<i16>().unwrap_or(MAX).min(MAX) } else { 0 }
}

/// Returns whether a request of this depth is refused.
pub fn is_loop(depth: i16) -> bool {
    depth >= MAX
}

/// Returns the depth of the deliveries of a submission of this depth.
pub fn of_deliveries(depth: i16) -> i16 {
    depth.clamp(0, MAX) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_a_number_and_the_largest_one_counts() {
        let of = |values: &[&str]| parse(values.iter().copied());
        assert_eq!(of(&[]), 0);
        assert_eq!([of(&["1"]), of(&[" 4 "]), of(&["05"])], [1, 4, 5]);
        assert_eq!([of(&["6"]), of(&["99999999999999999999"])], [MAX, MAX]);
        assert_eq!([of(&["-1"]), of(&["x"]), of(&[""]), of(&["1.5"])], [0; 4]);
        assert_eq!(of(&["1", "5", "x"]), 5, "a second header can't hide the first one");
    }

    #[test]
    fn a_chain_ends_with_the_fifth_delivery() {
        let mut depth = 0;
        let mut deliveries = 0;
        while !is_loop(depth) {
            depth = of_deliveries(depth);
            deliveries += 1;
        }
        assert_eq!((depth, deliveries), (5, 5));
    }
}
