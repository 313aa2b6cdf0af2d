//! Validation of one value by its field's type.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use serde_json::{Number, Value};

use crate::fields::{Field, FieldType, MAX_TEXT};

/// Minimum number of digits in a telephone number.
const MIN_TEL_DIGITS: usize = 3;

/// The broken rule and a message.
pub(super) type Refusal = (&'static str, String);

/// Validates a non-blank value.
pub(super) fn check(field: &Field, value: &Value) -> Result<(), Refusal> {
    let label = &field.label;
    match field.kind {
        FieldType::Number => check_number(field, value),
        FieldType::Checkbox => match value {
            Value::Bool(false) if field.required => Err(("required", format!("{label} must be ticked"))),
            Value::Bool(_) => Ok(()),
            _ => Err(("type", format!("{label} must be true or false"))),
        },
        FieldType::Multiselect => {
            let chosen =
                value.as_array().ok_or_else(|| ("type", format!("{label} must be a list of options")))?;
            let distinct: BTreeSet<_> = chosen.iter().filter_map(Value::as_str).collect();
            if distinct.len() != chosen.len() {
                return Err(("option", format!("{label} must be a list of different options")));
            }
            distinct.into_iter().try_for_each(|option| check_option(field, option))
        }
        _ => {
            let text = value.as_str().ok_or_else(|| ("type", format!("{label} must be a text")))?;
            check_text(field, text)
        }
    }
}

fn check_number(field: &Field, value: &Value) -> Result<(), Refusal> {
    let label = &field.label;
    let Value::Number(number) = value else { return Err(("type", format!("{label} must be a number"))) };
    match (field.min, field.max) {
        (Some(min), _) if is_below(number, min) => Err(("min", format!("{label} must be at least {min}"))),
        (_, Some(max)) if is_above(number, max) => Err(("max", format!("{label} must be at most {max}"))),
        _ => Ok(()),
    }
}

/// Compares exactly: converted to a float, a large integer would be rounded onto the bound.
#[expect(
    clippy::cast_possible_truncation,
    reason = "values beyond 128 bits saturate, far beyond any number here"
)]
fn is_below(number: &Number, bound: f64) -> bool {
    match number.as_i128() {
        Some(whole) => whole < bound.ceil() as i128,
        None => number.as_f64().is_some_and(|float| float < bound),
    }
}

/// Compares exactly, like [`is_below`].
#[expect(
    clippy::cast_possible_truncation,
    reason = "values beyond 128 bits saturate, far beyond any number here"
)]
fn is_above(number: &Number, bound: f64) -> bool {
    match number.as_i128() {
        Some(whole) => whole > bound.floor() as i128,
        None => number.as_f64().is_some_and(|float| float > bound),
    }
}

/// Returns whether two values are equal; `1` and `1.0` are.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    let (Value::Number(one), Value::Number(other)) = (one, other) else { return one == other };
    match (one.as_i128(), other.as_i128()) {
        (Some(_), None) => other.as_f64().is_some_and(|other| !is_below(one, other) && !is_above(one, other)),
        (None, Some(_)) => one.as_f64().is_some_and(|one| !is_below(other, one) && !is_above(other, one)),
        _ => one == other,
    }
}

fn check_option(field: &Field, text: &str) -> Result<(), Refusal> {
    if field.options.iter().any(|option| option == text) {
        return Ok(());
    }
    Err(("option", format!("{} must be one of: {}", field.label, field.options.join(", "))))
}

fn check_text(field: &Field, text: &str) -> Result<(), Refusal> {
    let label = &field.label;
    // Postgres' jsonb can't store it, and no keyboard produces it.
    if text.contains('\0') {
        return Err(("nul", format!("{label} must not contain a NUL character")));
    }
    if field.kind.is_free_text() {
        check_free_text(field, text)?;
    } else if text.chars().count() > MAX_TEXT {
        return Err(("too_long", format!("{label} may have at most {MAX_TEXT} characters")));
    }
    match field.kind {
        FieldType::Select => check_option(field, text),
        FieldType::Email if !is_email(text) => Err(("email", format!("{label} must be an e-mail address"))),
        FieldType::Url if !is_web_address(text) => Err(("url", format!("{label} must be a http(s) address"))),
        FieldType::Date if !is_day(text) => Err(("date", format!("{label} must be a day, YYYY-MM-DD"))),
        FieldType::Tel if !is_telephone_number(text) => {
            Err(("tel", format!("{label} must be a telephone number")))
        }
        _ => Ok(()),
    }
}

fn check_free_text(field: &Field, text: &str) -> Result<(), Refusal> {
    let label = &field.label;
    let length = text.chars().count();
    let max = field.max_length.map_or(MAX_TEXT, |n| n as usize).min(MAX_TEXT);
    if let Some(min) = field.min_length.filter(|min| length < *min as usize) {
        return Err(("too_short", format!("{label} needs at least {min} characters")));
    }
    if length > max {
        return Err(("too_long", format!("{label} may have at most {max} characters")));
    }
    if let Some(pattern) = &field.pattern
        && !pattern.is_match(text)
    {
        return Err(("pattern", format!("{label} does not have the expected form")));
    }
    Ok(())
}

/// Applies the HTML standard's rule for `<input type=email>`, so that browser and server agree, and requires a dot in
/// the domain and at most 254 characters (RFC 5321).
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let in_local = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let local_fits = !local.is_empty() && local.chars().all(in_local);
    text.len() <= 254 && local_fits && domain.contains('.') && domain.split('.').all(is_label)
}

/// Returns whether browsers accept the URL in `<input type=url>` and open it over http(s). Parsers trim and repair
/// URLs; here these are rejected, because the answer is stored unchanged.
fn is_web_address(text: &str) -> bool {
    let host_on = text
        .split_once("://")
        .filter(|(scheme, _)| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)));
    let begins = host_on.is_some_and(|(_, rest)| !rest.starts_with(['/', '\\']));
    let is_one_word = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    begins && is_one_word && url::Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Returns whether the text is a date. The parser alone would accept signs and spaces as digits.
fn is_day(text: &str) -> bool {
    let is_written_so = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    is_written_so && text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// Accepts every common notation of any country: only characters of telephone numbers, and enough digits.
fn is_telephone_number(text: &str) -> bool {
    let is_written_so = |c: char| c.is_ascii_digit() || " +-()./x#*".contains(c);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.chars().all(is_written_so) && digits >= MIN_TEL_DIGITS
}
