//! The values that expressions read, by the names of their variables.

use std::borrow::Cow;

use rhai::{Dynamic, Map, Scope};
use serde_json::Value;

use super::budget::{VARIABLES_MAX, count_bytes, too_much};
use super::error::ExpressionError;
use super::paths::Tree;
use super::values;

/// The variables of an evaluation. Nothing is copied until an expression reads it, and then only the part that it
/// reads.
#[derive(Debug, Clone, Default)]
pub struct Variables<'a> {
    named: Vec<(Cow<'a, str>, &'a Value)>,
}

impl<'a> Variables<'a> {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable. A later object shadows members of an earlier one of the same name, as steps of a loop shadow
    /// those outside it.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: &'a Value) -> Self {
        self.named.push((name.into(), value));
        self
    }

    fn layers(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        self.named.iter().rev().filter(move |(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Returns a variable with all its members.
    fn whole(&self, name: &str) -> Result<Cow<'a, Value>, ExpressionError> {
        let layers: Vec<&Value> = self.layers(name).collect();
        match &layers[..] {
            [] => Err(ExpressionError(format!("there is no variable {name}"))),
            [one] => Ok(Cow::Borrowed(*one)),
            [top, ..] if !top.is_object() => Ok(Cow::Borrowed(*top)),
            layers => {
                let objects = layers.iter().rev().filter_map(|layer| layer.as_object());
                let merged = objects.flatten().map(|(name, value)| (name.clone(), value.clone()));
                Ok(Cow::Owned(Value::Object(merged.collect())))
            }
        }
    }

    fn member(&self, name: &str, member: &str) -> Option<&'a Value> {
        self.layers(name).find_map(|layer| layer.get(member))
    }

    /// Returns a copy of the value at a path; `None` if there is none.
    pub(super) fn read(&self, path: &[String]) -> Result<Option<Value>, ExpressionError> {
        let (name, rest) =
            path.split_first().ok_or_else(|| ExpressionError("the path is empty".to_owned()))?;
        let Some((first, rest)) = rest.split_first() else {
            return self.whole(name).map(|v| Some(v.into_owned()));
        };
        if self.layers(name).next().is_none() {
            return Err(ExpressionError(format!("there is no variable {name}")));
        }
        let value = rest.iter().try_fold(self.member(name, first), |value, name| {
            value.map(|value| value.get(name.as_str())).ok_or(())
        });
        Ok(value.ok().flatten().cloned())
    }

    /// Converts what an expression reads.
    pub(super) fn scope(&self, tree: &Tree) -> Result<Scope<'static>, ExpressionError> {
        let mut scope = Scope::new();
        let mut bytes = 0;
        for (name, part) in &tree.members {
            let value = if part.reads > 0 {
                convert(&*self.whole(name)?, part, &mut bytes)?
            } else {
                if self.layers(name).next().is_none() {
                    return Err(ExpressionError(format!("there is no variable {name}")));
                }
                let members = part.members.iter().filter_map(|(member, below)| {
                    let value = self.member(name, member)?;
                    Some(convert(value, below, &mut bytes).map(|value| (member.as_str().into(), value)))
                });
                members.collect::<Result<Map, _>>()?.into()
            };
            scope.push_dynamic(name.clone(), value);
        }
        Ok(scope)
    }
}

/// Converts the part of a value that an expression reads.
fn convert(value: &Value, tree: &Tree, bytes: &mut usize) -> Result<Dynamic, ExpressionError> {
    if tree.reads > 0 {
        // rhai may copy a value each time it is read.
        let weight = values::json_weight(value).saturating_mul(tree.reads + 1);
        count_bytes(weight);
        *bytes = bytes.saturating_add(weight);
        return if *bytes > VARIABLES_MAX { Err(too_much()) } else { Ok(values::from_json(value)) };
    }
    // Only members are read: of anything but an object they are all null.
    let Value::Object(object) = value else { return Ok(Dynamic::UNIT) };
    let members = tree.members.iter().filter_map(|(name, below)| {
        let value = object.get(name)?;
        Some(convert(value, below, bytes).map(|value| (name.as_str().into(), value)))
    });
    Ok(members.collect::<Result<Map, _>>()?.into())
}
