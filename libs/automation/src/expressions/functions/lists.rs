//! Functions of lists, objects and texts alike.

use std::collections::BTreeSet;

use rhai::{Array, Dynamic, Map};

use super::arguments::{Outcome, text, whole};
use crate::expressions::{budget, limits::ELEMENTS_MAX, values as convert};

pub(super) fn default(arguments: &[&Dynamic]) -> Outcome {
    let is_missing =
        arguments[0].is_unit() || arguments[0].as_immutable_string_ref().is_ok_and(|text| text.is_empty());
    Ok(arguments[usize::from(is_missing)].clone())
}

pub(super) fn choose(arguments: &[&Dynamic]) -> Outcome {
    Ok(arguments[if convert::is_true(arguments[0]) { 1 } else { 2 }].clone())
}

pub(super) fn len(arguments: &[&Dynamic]) -> Outcome {
    let value = arguments[0];
    let length = if let Ok(list) = value.as_array_ref() {
        list.len()
    } else if let Ok(object) = value.as_map_ref() {
        object.len()
    } else {
        text(value)?.chars().count()
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX).into())
}

pub(super) fn contains(arguments: &[&Dynamic]) -> Outcome {
    let (whole, part) = (arguments[0], arguments[1]);
    if whole.is_unit() {
        return Ok(false.into());
    }
    if let Ok(list) = whole.as_array_ref() {
        return Ok(list.iter().any(|element| convert::equal(element, part)).into());
    }
    if let Ok(object) = whole.as_map_ref() {
        return Ok(object.contains_key(text(part)?.as_str()).into());
    }
    Ok(text(whole)?.contains(&text(part)?).into())
}

pub(super) fn slice(arguments: &[&Dynamic]) -> Outcome {
    let bounds = |length: usize| -> Result<(usize, usize), String> {
        let at = |argument: &Dynamic| {
            let at = whole(argument)?;
            let from_end = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
            Ok::<_, String>(if at < 0 { length.saturating_sub(from_end) } else { from_end.min(length) })
        };
        let from = at(arguments[1])?;
        let to = arguments.get(2).filter(|to| !to.is_unit()).map_or(Ok(length), |to| at(to))?;
        Ok((from, to.max(from)))
    };
    if let Ok(list) = arguments[0].as_array_ref() {
        let (from, to) = bounds(list.len())?;
        return Ok(list[from..to].to_vec().into());
    }
    let text = text(arguments[0])?;
    let (from, to) = bounds(text.chars().count())?;
    Ok(text.chars().skip(from).take(to - from).collect::<String>().into())
}

pub(super) fn first(arguments: &[&Dynamic]) -> Outcome {
    if let Ok(list) = arguments[0].as_array_ref() {
        return Ok(list.first().cloned().unwrap_or_default());
    }
    Ok(text(arguments[0])?.chars().next().map_or(Dynamic::UNIT, |char| char.to_string().into()))
}

pub(super) fn last(arguments: &[&Dynamic]) -> Outcome {
    if let Ok(list) = arguments[0].as_array_ref() {
        return Ok(list.last().cloned().unwrap_or_default());
    }
    Ok(text(arguments[0])?.chars().next_back().map_or(Dynamic::UNIT, |char| char.to_string().into()))
}

pub(super) fn pluck(arguments: &[&Dynamic]) -> Outcome {
    let (list, name) = (list(arguments[0])?, text(arguments[1])?);
    let member = |element: &Dynamic| {
        element.as_map_ref().ok().and_then(|object| object.get(name.as_str()).cloned()).unwrap_or_default()
    };
    Ok(list.iter().map(member).collect::<Array>().into())
}

pub(super) fn keys(arguments: &[&Dynamic]) -> Outcome {
    Ok(object(arguments[0])?.keys().map(|name| name.as_str().into()).collect::<Array>().into())
}

pub(super) fn values(arguments: &[&Dynamic]) -> Outcome {
    Ok(object(arguments[0])?.into_values().collect::<Array>().into())
}

pub(super) fn merge(arguments: &[&Dynamic]) -> Outcome {
    let mut merged = object(arguments[0])?;
    merged.extend(object(arguments[1])?);
    check_count(merged.len())?;
    Ok(merged.into())
}

pub(super) fn concat(arguments: &[&Dynamic]) -> Outcome {
    let mut joined = list(arguments[0])?;
    joined.extend(list(arguments[1])?);
    check_count(joined.len())?;
    Ok(joined.into())
}

pub(super) fn unique(arguments: &[&Dynamic]) -> Outcome {
    let list = list(arguments[0])?;
    // Each element is sorted in, which costs about as much as copying it.
    budget::count_bytes(64 * list.len());
    let mut known = BTreeSet::new();
    let mut found = Array::new();
    for element in list {
        let mut key = String::new();
        convert::write_key(&element, &mut key).map_err(|_| "the list can't be compared".to_owned())?;
        budget::charge(key.len())?;
        if known.insert(key) {
            found.push(element);
        }
    }
    Ok(found.into())
}

pub(super) fn reverse(arguments: &[&Dynamic]) -> Outcome {
    let mut list = list(arguments[0])?;
    list.reverse();
    Ok(list.into())
}

fn check_count(count: usize) -> Result<(), String> {
    if count > ELEMENTS_MAX {
        return Err(format!("at most {ELEMENTS_MAX} elements are possible"));
    }
    Ok(())
}

/// Returns a list; null is the empty one.
pub(super) fn list(value: &Dynamic) -> Result<Array, String> {
    if value.is_unit() {
        return Ok(Array::new());
    }
    value.as_array_ref().map(|list| list.clone()).map_err(|_| "a list is needed".to_owned())
}

fn object(value: &Dynamic) -> Result<Map, String> {
    if value.is_unit() {
        return Ok(Map::new());
    }
    value.as_map_ref().map(|object| object.clone()).map_err(|_| "an object is needed".to_owned())
}
