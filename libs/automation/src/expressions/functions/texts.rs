//! Functions of texts. Null is the empty text; numbers, lists and objects are converted.

use rhai::{Array, Dynamic};

use super::arguments::{Outcome, bounded, check_bytes, text};
use crate::expressions::limits::ELEMENTS_MAX;

pub(super) fn string(arguments: &[&Dynamic]) -> Outcome {
    bounded(text(arguments[0])?)
}

pub(super) fn lower(arguments: &[&Dynamic]) -> Outcome {
    bounded(text(arguments[0])?.to_lowercase())
}

pub(super) fn upper(arguments: &[&Dynamic]) -> Outcome {
    bounded(text(arguments[0])?.to_uppercase())
}

pub(super) fn trim(arguments: &[&Dynamic]) -> Outcome {
    Ok(text(arguments[0])?.trim().into())
}

pub(super) fn replace(arguments: &[&Dynamic]) -> Outcome {
    let (whole, part, by) = (text(arguments[0])?, text(arguments[1])?, text(arguments[2])?);
    if part.is_empty() {
        return bounded(whole);
    }
    let count = whole.matches(&part).count();
    check_bytes((whole.len() - count * part.len()).saturating_add(count.saturating_mul(by.len())))?;
    Ok(whole.replace(&part, &by).into())
}

pub(super) fn split(arguments: &[&Dynamic]) -> Outcome {
    let (whole, separator) = (text(arguments[0])?, text(arguments[1])?);
    if separator.is_empty() {
        return Err("the separator is empty".to_owned());
    }
    let pieces: Array = whole.split(&separator).take(ELEMENTS_MAX + 1).map(Into::into).collect();
    if pieces.len() > ELEMENTS_MAX {
        return Err(format!("a list may have at most {ELEMENTS_MAX} elements"));
    }
    Ok(pieces.into())
}

pub(super) fn join(arguments: &[&Dynamic]) -> Outcome {
    let list = arguments[0];
    if list.is_unit() {
        return Ok("".into());
    }
    let separator = arguments.get(1).map_or_else(|| Ok(", ".to_owned()), |argument| text(argument))?;
    let list = list.as_array_ref().map_err(|_| "a list is needed".to_owned())?;
    let mut joined = String::new();
    for (at, element) in list.iter().enumerate() {
        let element = text(element)?;
        check_bytes(joined.len() + separator.len() + element.len())?;
        if at > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&element);
    }
    Ok(joined.into())
}

pub(super) fn starts_with(arguments: &[&Dynamic]) -> Outcome {
    Ok(text(arguments[0])?.starts_with(&text(arguments[1])?).into())
}

pub(super) fn ends_with(arguments: &[&Dynamic]) -> Outcome {
    Ok(text(arguments[0])?.ends_with(&text(arguments[1])?).into())
}
