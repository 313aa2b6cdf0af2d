//! Templates: texts with `{{ expression }}` in them, and whole JSON trees of such texts.
//!
//! Only the text of the definition is scanned, once. What an expression returns is escaped and copied; it is never
//! scanned again, so a visitor's `{{ env.TOKEN }}` stays text.

mod json_template;
mod scanner;

use std::borrow::Cow;

use serde_json::Value;

use crate::expressions::{Expression, ExpressionError, Reference, Variables, values};

pub use json_template::JsonTemplate;
use scanner::Piece;

/// Maximum size of the text that one template writes, in bytes.
pub const FIELD_BYTES_MAX: usize = 64 << 10;
/// Maximum size of all that the templates of one step write, in bytes.
pub const STEP_BYTES_MAX: usize = 256 << 10;

/// How values are escaped in the text around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Not at all: the result is not read by a parser.
    None,
    /// For text and attribute values of HTML.
    Html,
    /// For the inside of a JSON string.
    Json,
    /// For one part of a URL. A value with which the template begins stays as it is, so that it can be an address.
    Url,
}

/// The bytes that the templates of one step may still write.
#[derive(Debug)]
pub struct OutputBudget {
    left: usize,
}

impl Default for OutputBudget {
    fn default() -> Self {
        Self { left: STEP_BYTES_MAX }
    }
}

impl OutputBudget {
    /// Takes the bytes of one field. A value that stands alone may take all that the step has left.
    fn take(&mut self, bytes: usize, is_alone: bool) -> Result<(), ExpressionError> {
        if !is_alone && bytes > FIELD_BYTES_MAX {
            let message = format!("the result has {bytes} bytes; a template may write {FIELD_BYTES_MAX}");
            return Err(ExpressionError(message));
        }
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                let message = format!("the templates of one step may write {STEP_BYTES_MAX} bytes together");
                return Err(ExpressionError(message));
            }
        }
        Ok(())
    }
}

/// A compiled template.
#[derive(Debug, Clone)]
pub struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Compiles a template. A text without `{{` is itself.
    ///
    /// # Errors
    /// A `{{` is not closed, or an expression is invalid; the message says at which character.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        scanner::scan(text).map(|pieces| Self { pieces })
    }

    /// Returns the value: of exactly one expression its value with its type, else a text.
    ///
    /// # Errors
    /// An expression fails, or the result is too large.
    pub fn render(
        &self,
        variables: &Variables<'_>,
        escape: Escape,
        budget: &mut OutputBudget,
    ) -> Result<Value, ExpressionError> {
        if let [Piece::Expression(expression)] = &self.pieces[..] {
            let value = expression.evaluate(variables)?;
            return match (value, escape) {
                (Value::String(text), Escape::Html) => {
                    let text = escaped(&text, escape).into_owned();
                    budget.take(text.len(), false)?;
                    Ok(Value::String(text))
                }
                (value, _) => {
                    budget.take(domain::json_bytes(&value), true)?;
                    Ok(value)
                }
            };
        }
        self.text(variables, escape, budget).map(Value::String)
    }

    /// Returns the text: null is empty, numbers, true and false are as in JSON, lists and objects are JSON.
    ///
    /// # Errors
    /// Those of [`Self::render`].
    pub fn text(
        &self,
        variables: &Variables<'_>,
        escape: Escape,
        budget: &mut OutputBudget,
    ) -> Result<String, ExpressionError> {
        let mut output = String::new();
        let mut written = 0;
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => output.push_str(text),
                Piece::Expression(expression) => {
                    let value = values::text_of(&expression.evaluate(variables)?);
                    let escape = if at == 0 && escape == Escape::Url { Escape::None } else { escape };
                    let value = escaped(&value, escape);
                    written += value.len();
                    // Text of the author has its own limits: a page's HTML may have 512 KB.
                    if written > FIELD_BYTES_MAX {
                        budget.take(written, false)?;
                    }
                    output.push_str(&value);
                }
            }
        }
        budget.take(written, false)?;
        Ok(output)
    }

    /// Returns what the expressions read.
    pub fn references(&self) -> Vec<Reference> {
        let expressions = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Expression(expression) => Some(expression),
            Piece::Text(_) => None,
        });
        expressions.flat_map(Expression::references).collect()
    }

    /// Returns the text, if the template has no expression.
    pub fn literal(&self) -> Option<&str> {
        match &self.pieces[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

fn escaped(text: &str, escape: Escape) -> Cow<'_, str> {
    match escape {
        Escape::None => Cow::Borrowed(text),
        Escape::Html => html_escape::encode_quoted_attribute(text),
        Escape::Json => {
            let quoted = Value::from(text).to_string();
            Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
        }
        Escape::Url => Cow::Owned(crate::expressions::for_url(text)),
    }
}

#[cfg(test)]
mod tests;
