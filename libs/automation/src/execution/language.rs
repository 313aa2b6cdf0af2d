//! The language of a definition: its templates and expressions, each compiled once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};

use super::{Escape, Language, Scope};
use crate::expressions::{Expression, ExpressionError, Variables};
use crate::templates::{OutputBudget, Template};

/// The texts of one definition, compiled when they are first evaluated. Only texts of the definition are ever compiled,
/// so it stays as small as the definition.
#[derive(Debug, Default)]
pub struct Compiled {
    templates: RwLock<HashMap<String, Arc<Template>>>,
    expressions: RwLock<HashMap<String, Arc<Expression>>>,
}

impl Compiled {
    fn render_value(
        &self,
        template: &Value,
        escape: Escape,
        variables: &Variables<'_>,
        budget: &mut OutputBudget,
    ) -> Result<Value, ExpressionError> {
        Ok(match template {
            Value::String(text) if text.contains("{{") => {
                compiled(&self.templates, text, Template::parse)?.render(variables, escape, budget)?
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.render_value(item, escape, variables, budget));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, member)| {
                    Ok((name.clone(), self.render_value(member, escape, variables, budget)?))
                });
                Value::Object(members.collect::<Result<Map<_, _>, ExpressionError>>()?)
            }
            literal => literal.clone(),
        })
    }
}

impl Language for Compiled {
    fn evaluate(&self, expression: &str, scope: &Scope) -> Result<Value, String> {
        let evaluated = compiled(&self.expressions, expression, Expression::parse)
            .and_then(|expression| expression.evaluate(&variables(scope)));
        evaluated.map_err(|error| error.to_string())
    }

    fn render(
        &self,
        template: &Value,
        escape: Escape,
        scope: &Scope,
        budget: &mut OutputBudget,
    ) -> Result<Value, String> {
        self.render_value(template, escape, &variables(scope), budget).map_err(|error| error.to_string())
    }
}

fn variables(scope: &Scope) -> Variables<'_> {
    scope.variables().fold(Variables::new(), |variables, (name, value)| variables.with(name, value))
}

fn compiled<T>(
    known: &RwLock<HashMap<String, Arc<T>>>,
    text: &str,
    parse: impl Fn(&str) -> Result<T, ExpressionError>,
) -> Result<Arc<T>, ExpressionError> {
    if let Some(found) = known.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Ok(Arc::clone(found));
    }
    let parsed = Arc::new(parse(text)?);
    known.write().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned(), Arc::clone(&parsed));
    Ok(parsed)
}
