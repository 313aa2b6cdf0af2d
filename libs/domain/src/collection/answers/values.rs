//! Validation of one value by its field's type.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::NaiveDate;
use serde_json::{Number, Value};

use crate::fields::{Field, FieldType, MAX_TEXT};

/// Minimum number of digits in a telephone number.
const MIN_TEL_DIGITS: usize = 3;
/// Words before the extension of a telephone number, in lower case; `;ext=` is that of RFC 3966.
const EXTENSIONS: [&str; 8] = [";ext=", "ext", "ext.", "ext:", "extn", "extn.", "extension", ","];
/// Characters without a width, which IDNA ignores: an address with one would be stored with it.
const INVISIBLE: [char; 4] = ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}'];

/// The broken rule and a message.
pub(super) type Refusal = (&'static str, String);

/// Cuts the blanks around an e-mail address or a URL. They come from the clipboard, and browsers cut them too.
pub(super) fn trimmed(kind: FieldType, value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) if matches!(kind, FieldType::Email | FieldType::Url) => {
            let cut = text.trim();
            if cut.len() == text.len() { Cow::Borrowed(value) } else { Cow::Owned(Value::from(cut)) }
        }
        _ => Cow::Borrowed(value),
    }
}

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
        FieldType::Email if !is_email(text) && !is_international_email(text) => {
            Err(("email", format!("{label} must be an e-mail address")))
        }
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
        let hint = field.pattern_hint.as_deref().filter(|hint| !hint.trim().is_empty());
        let expected = hint.map_or_else(String::new, |hint| format!(": {hint}"));
        return Err(("pattern", format!("{label} does not have the expected form{expected}")));
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

/// Returns whether the text is an e-mail address with letters beyond ASCII in its domain. Its ASCII form is subject to the
/// same rules.
fn is_international_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    ascii_domain(domain).is_some_and(|domain| is_email(&format!("{local}@{domain}")))
}

/// Returns how an e-mail address may be spelled in answers, in lower case: with its domain in ASCII, and with the letters
/// that this stands for. `None` if an e-mail field refuses it.
pub fn email_spellings(text: &str) -> Option<Vec<String>> {
    if !is_email(text) && !is_international_email(text) {
        return None;
    }
    let (local, domain) = text.rsplit_once('@')?;
    let ascii = ascii_domain(domain).unwrap_or_else(|| domain.to_owned());
    let unicode = url::quirks::domain_to_unicode(&ascii);
    let domains = BTreeSet::from([domain.to_lowercase(), ascii.to_lowercase(), unicode.to_lowercase()]);
    let domains = domains.into_iter().filter(|domain| !domain.is_empty());
    Some(domains.map(|domain| format!("{}@{domain}", local.to_lowercase())).collect())
}

/// Returns the ASCII form of a domain with other letters: `xn--mnchen-3ya.de` for `münchen.de`. `None` if it is ASCII
/// already, or no domain. URLs have domains with escapes and with hyphens at the ends of labels; e-mail addresses don't.
pub(crate) fn ascii_domain(domain: &str) -> Option<String> {
    let has_outer_hyphen = domain.split('.').any(|label| label.starts_with('-') || label.ends_with('-'));
    if domain.is_ascii() || domain.contains('%') || domain.contains(INVISIBLE) || has_outer_hyphen {
        return None;
    }
    match url::Host::parse(domain) {
        Ok(url::Host::Domain(ascii)) => Some(ascii),
        _ => None,
    }
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

/// Accepts every common notation of any country: only characters of telephone numbers, enough digits, and an extension.
/// Numbers from an address book or a web page often have blanks and hyphens that don't break a line.
fn is_telephone_number(text: &str) -> bool {
    let is_blank = |c: char| matches!(c, ' ' | '\u{a0}' | '\u{2007}' | '\u{2009}' | '\u{202f}');
    let is_written_so = |c: char| {
        c.is_ascii_digit() || is_blank(c) || "+-()./x#*".contains(c) || ('\u{2010}'..='\u{2013}').contains(&c)
    };
    let lower = text.to_ascii_lowercase();
    let before_digits = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_digits = before_digits.len() < lower.len();
    let before = before_digits.trim_end_matches(is_blank);
    let main = EXTENSIONS.iter().filter(|_| has_digits).find_map(|word| before.strip_suffix(word));
    let number = main.unwrap_or(text);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    number.chars().all(is_written_so) && digits >= MIN_TEL_DIGITS
}
