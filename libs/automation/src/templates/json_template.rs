//! A JSON value with templates in its texts.

use serde_json::{Map, Value};

use super::{Escape, OutputBudget, Template};
use crate::expressions::{ExpressionError, Reference, Variables};

/// A compiled JSON value with templates in its texts. Names of members are not templates.
#[derive(Debug, Clone)]
pub enum JsonTemplate {
    /// A value without templates.
    Literal(Value),
    /// A text.
    Text(Template),
    /// A list.
    List(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    /// Compiles all texts of a value.
    ///
    /// # Errors
    /// The first template that is invalid: its path below the value, such as `a[0].b`, and the reason.
    pub fn parse(value: &Value) -> Result<Self, (String, ExpressionError)> {
        match value {
            Value::String(text) => {
                let template = Template::parse(text).map_err(|error| (String::new(), error))?;
                if template.literal().is_some() {
                    return Ok(Self::Literal(value.clone()));
                }
                Ok(Self::Text(template))
            }
            Value::Array(list) => {
                let parse = |(at, value): (usize, &Value)| {
                    Self::parse(value).map_err(|(path, error)| (join(&format!("[{at}]"), &path), error))
                };
                list.iter().enumerate().map(parse).collect::<Result<_, _>>().map(Self::List)
            }
            Value::Object(object) => Self::parse_object(object),
            other => Ok(Self::Literal(other.clone())),
        }
    }

    /// Compiles the members of an object.
    ///
    /// # Errors
    /// Those of [`Self::parse`].
    pub fn parse_object(object: &Map<String, Value>) -> Result<Self, (String, ExpressionError)> {
        let parse = |(name, value): (&String, &Value)| match Self::parse(value) {
            Ok(template) => Ok((name.clone(), template)),
            Err((path, error)) => Err((join(name, &path), error)),
        };
        object.iter().map(parse).collect::<Result<_, _>>().map(Self::Object)
    }

    /// Returns the value, with a result in place of each template.
    ///
    /// # Errors
    /// An expression fails, or the result is too large.
    pub fn render(
        &self,
        variables: &Variables<'_>,
        escape: Escape,
        budget: &mut OutputBudget,
    ) -> Result<Value, ExpressionError> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Text(template) => template.render(variables, escape, budget)?,
            Self::List(list) => {
                let values = list.iter().map(|template| template.render(variables, escape, budget));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let mut object = Map::new();
                for (name, template) in members {
                    object.insert(name.clone(), template.render(variables, escape, budget)?);
                }
                Value::Object(object)
            }
        })
    }

    /// Returns what the templates read.
    pub fn references(&self) -> Vec<Reference> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Text(template) => template.references(),
            Self::List(list) => list.iter().flat_map(Self::references).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, template)| template.references()).collect(),
        }
    }
}

fn join(name: &str, below: &str) -> String {
    match below {
        "" => name.to_owned(),
        below if below.starts_with('[') => format!("{name}{below}"),
        below => format!("{name}.{below}"),
    }
}
