//! `transform`: filters, sorts and reshapes a list or an object.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::walk::{StepError, Visit, Walk};
use super::{Effects, Escape, Language, OutputBudget, RUN_BYTES_MAX, Scope, StepStatus, TRANSFORM_ITEMS_MAX};
use crate::definition::{SortOrder, TransformSort, TransformStep};
use crate::expressions::is_true;

impl<E: Effects, L: Language> Walk<'_, E, L> {
    pub(super) fn transform(
        &self,
        visit: &Visit<'_>,
        transform: &TransformStep,
        scope: &Scope,
    ) -> Result<Value, StepError> {
        let mut budget = OutputBudget::default();
        let input = self.language.render(&transform.input, Escape::None, scope, &mut budget);
        let input = input.map_err(|error| format!("input: {error}"))?;
        let output = match input {
            Value::Array(items) => Value::Array(transform_list(self.language, transform, items, scope)?),
            Value::Object(members) => transform_object(self.language, transform, members, scope)?,
            other => {
                return Err(format!("input: expected a list or an object, got {}", type_of(&other)).into());
            }
        };
        self.record_computed(visit, || visit.record(StepStatus::Success, Value::Null, output.clone()));
        Ok(output)
    }
}

fn transform_list(
    language: &impl Language,
    transform: &TransformStep,
    items: Vec<Value>,
    scope: &Scope,
) -> Result<Vec<Value>, String> {
    check_count(items.len())?;
    let mut elements = Elements::new(language, scope);
    let mut kept = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        elements.enter("index", index.into(), &item);
        if elements.passes(transform.filter.as_deref(), index)? {
            kept.push((index, item));
        }
    }
    if let Some(sort) = &transform.sort {
        kept = sorted(&mut elements, sort, kept)?;
    }
    let mut output = Vec::with_capacity(kept.len());
    let mut mapping = Mapping::new(transform);
    for (index, item) in kept {
        if transform.map.is_some() {
            elements.enter("index", index.into(), &item);
        }
        let mapped = mapping.of(&elements, item).map_err(|error| format!("map, element {index}: {error}"))?;
        output.push(picked(transform, mapped));
    }
    Ok(output)
}

/// The `map` of a step. Its elements share one budget, and are bounded together before they all exist: the text around
/// the templates is not in the budget.
struct Mapping<'a> {
    template: Option<&'a Value>,
    budget: OutputBudget,
    bytes: usize,
}

impl<'a> Mapping<'a> {
    fn new(transform: &'a TransformStep) -> Self {
        Self { template: transform.map.as_ref(), budget: OutputBudget::default(), bytes: 0 }
    }

    /// Returns the new element in place of the one that was entered.
    fn of<L: Language>(&mut self, elements: &Elements<'_, L>, item: Value) -> Result<Value, String> {
        let Some(template) = self.template else { return Ok(item) };
        let mapped = elements.language.render(template, Escape::None, &elements.scope, &mut self.budget)?;
        self.bytes = self.bytes.saturating_add(domain::json_bytes(&mapped));
        if self.bytes > RUN_BYTES_MAX {
            return Err("the elements have more than 8 MB together".to_owned());
        }
        Ok(mapped)
    }
}

fn transform_object(
    language: &impl Language,
    transform: &TransformStep,
    members: Map<String, Value>,
    scope: &Scope,
) -> Result<Value, String> {
    check_count(members.len())?;
    if transform.sort.is_some() {
        return Err("sort: only a list can be sorted, and the input is an object".to_owned());
    }
    let mut elements = Elements::new(language, scope);
    let mut output = Map::new();
    let mut mapping = Mapping::new(transform);
    for (key, item) in members {
        elements.enter("key", key.clone().into(), &item);
        if !elements.passes(transform.filter.as_deref(), &key)? {
            continue;
        }
        let mapped = mapping.of(&elements, item).map_err(|error| format!("map, member `{key}`: {error}"))?;
        output.insert(key, mapped);
    }
    Ok(picked(transform, Value::Object(output)))
}

fn check_count(count: usize) -> Result<(), String> {
    if count > TRANSFORM_ITEMS_MAX {
        return Err(format!("input: at most {TRANSFORM_ITEMS_MAX} elements, got {count}"));
    }
    Ok(())
}

fn sorted<L: Language>(
    elements: &mut Elements<'_, L>,
    sort: &TransformSort,
    items: Vec<(usize, Value)>,
) -> Result<Vec<(usize, Value)>, String> {
    let mut keyed = Vec::with_capacity(items.len());
    for (index, item) in items {
        elements.enter("index", index.into(), &item);
        let key = elements.language.evaluate(&sort.by, &elements.scope);
        keyed.push((key.map_err(|error| format!("sort.by, element {index}: {error}"))?, index, item));
    }
    // Stable in both directions: equal elements keep their order.
    keyed.sort_by(|(left, ..), (right, ..)| match sort.order {
        SortOrder::Asc => compare(left, right),
        SortOrder::Desc => compare(right, left),
    });
    Ok(keyed.into_iter().map(|(_, index, item)| (index, item)).collect())
}

/// Compares values of any types: null, booleans, numbers, texts, the rest.
fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    };
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ => Ordering::Equal,
    })
}

fn compare_numbers(left: &serde_json::Number, right: &serde_json::Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
    }
}

fn picked(transform: &TransformStep, value: Value) -> Value {
    match (&transform.pick, value) {
        (Some(names), Value::Object(mut members)) => {
            let picked = names.iter().filter_map(|name| members.remove_entry(name.as_str()));
            Value::Object(picked.collect())
        }
        (_, value) => value,
    }
}

/// Returns the name of a value's type for an error.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A scope with an `item` that is replaced for each element.
struct Elements<'a, L> {
    language: &'a L,
    scope: Scope,
    depth: usize,
}

impl<'a, L: Language> Elements<'a, L> {
    fn new(language: &'a L, scope: &Scope) -> Self {
        Self { language, scope: scope.clone(), depth: scope.depth() }
    }

    fn enter(&mut self, name: &str, at: Value, item: &Value) {
        self.scope.replace_locals(self.depth, [("item".to_owned(), item.clone()), (name.to_owned(), at)]);
    }

    fn passes(&self, filter: Option<&str>, at: impl std::fmt::Display) -> Result<bool, String> {
        let Some(filter) = filter else { return Ok(true) };
        let value = self.language.evaluate(filter, &self.scope);
        value.map(|value| is_true(&value)).map_err(|error| format!("filter, element {at}: {error}"))
    }
}
