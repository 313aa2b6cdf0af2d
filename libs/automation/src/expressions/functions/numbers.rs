//! Functions of numbers and comparisons.

use std::cmp::Ordering;

use rhai::Dynamic;

use super::arguments::{Outcome, whole};
use super::lists::list;
use crate::expressions::values::{self, is_true};

/// Parses a number; a text may hold one.
pub(super) fn number(arguments: &[&Dynamic]) -> Outcome {
    let value = arguments[0];
    if value.is_int() || value.is_float() {
        return Ok(value.clone());
    }
    if let Ok(bool) = value.as_bool() {
        return Ok(i64::from(bool).into());
    }
    let Ok(text) = value.as_immutable_string_ref() else { return Ok(Dynamic::UNIT) };
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(whole.into());
    }
    // `inf` and `nan` are words of Rust, not numbers of JSON.
    let is_number = text.starts_with(|char: char| char.is_ascii_digit() || "+-.".contains(char));
    Ok(text
        .parse::<f64>()
        .ok()
        .filter(|float| is_number && float.is_finite())
        .map_or(Dynamic::UNIT, Into::into))
}

pub(super) fn bool(arguments: &[&Dynamic]) -> Outcome {
    Ok(is_true(arguments[0]).into())
}

fn float(value: &Dynamic) -> Result<f64, String> {
    let parsed = number(&[value])?;
    values::number(&parsed).ok_or_else(|| "a number is needed".to_owned())
}

/// Returns a whole number as such, so that `round(2.4)` is `2`.
fn whole_if_possible(float: f64) -> Dynamic {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float of that size holds every whole number exactly"
    )]
    if float.fract() == 0.0 && float.abs() < 9e15 { (float as i64).into() } else { float.into() }
}

pub(super) fn round(arguments: &[&Dynamic]) -> Outcome {
    let digits = arguments.get(1).map_or(Ok(0), |digits| whole(digits))?;
    if arguments[0].is_int() && digits >= 0 {
        return Ok(arguments[0].clone());
    }
    let digits = i32::try_from(digits).ok().filter(|digits| (-15..=15).contains(digits));
    let factor = 10f64.powi(digits.ok_or("between -15 and 15 digits are possible")?);
    let scaled = float(arguments[0])? * factor;
    let rounded = if scaled.is_finite() { scaled.round() / factor } else { float(arguments[0])? };
    Ok(if factor > 1.0 { rounded.into() } else { whole_if_possible(rounded) })
}

pub(super) fn floor(arguments: &[&Dynamic]) -> Outcome {
    Ok(if arguments[0].is_int() {
        arguments[0].clone()
    } else {
        whole_if_possible(float(arguments[0])?.floor())
    })
}

pub(super) fn ceil(arguments: &[&Dynamic]) -> Outcome {
    Ok(if arguments[0].is_int() {
        arguments[0].clone()
    } else {
        whole_if_possible(float(arguments[0])?.ceil())
    })
}

pub(super) fn abs(arguments: &[&Dynamic]) -> Outcome {
    match arguments[0].as_int() {
        Ok(whole) => whole.checked_abs().map(Into::into).ok_or_else(|| "the number is too large".to_owned()),
        Err(_) => Ok(float(arguments[0])?.abs().into()),
    }
}

pub(super) fn sum(arguments: &[&Dynamic]) -> Outcome {
    let list = list(arguments[0])?;
    let mut total = 0i64;
    for (at, element) in list.iter().enumerate() {
        match element.as_int().ok().and_then(|whole| total.checked_add(whole)) {
            Some(next) => total = next,
            None => {
                let rest = list[at..].iter().map(float).sum::<Result<f64, _>>()?;
                return Ok((float(&total.into())? + rest).into());
            }
        }
    }
    Ok(total.into())
}

fn compare(a: &Dynamic, b: &Dynamic) -> Result<Ordering, String> {
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return Ok(a.cmp(&b));
    }
    if let (Ok(a), Ok(b)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return Ok(a.cmp(&b));
    }
    let (a, b) = (values::number(a), values::number(b));
    a.zip(b)
        .and_then(|(a, b)| a.partial_cmp(&b))
        .ok_or_else(|| "two numbers or two texts are needed".to_owned())
}

pub(super) fn between(arguments: &[&Dynamic]) -> Outcome {
    if arguments[0].is_unit() {
        return Ok(false.into());
    }
    Ok((compare(arguments[1], arguments[0])?.is_le() && compare(arguments[0], arguments[2])?.is_le()).into())
}

fn extreme(arguments: &[&Dynamic], wanted: Ordering) -> Outcome {
    let listed;
    let candidates: Vec<&Dynamic> = if arguments.len() == 1 {
        listed = list(arguments[0])?;
        listed.iter().collect()
    } else {
        arguments.to_vec()
    };
    let mut best: Option<&Dynamic> = None;
    for candidate in candidates.into_iter().filter(|candidate| !candidate.is_unit()) {
        if best.map_or(Ok(Ordering::Equal), |best| compare(candidate, best))? == wanted || best.is_none() {
            best = Some(candidate);
        }
    }
    Ok(best.cloned().unwrap_or_default())
}

pub(super) fn min(arguments: &[&Dynamic]) -> Outcome {
    extreme(arguments, Ordering::Less)
}

pub(super) fn max(arguments: &[&Dynamic]) -> Outcome {
    extreme(arguments, Ordering::Greater)
}
