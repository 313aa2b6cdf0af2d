//! Templates: texts with `{{ expression }}` in them, and whole JSON trees of such texts.
//!
//! Only the text of the definition is scanned, once. What an expression returns is escaped and copied; it is never
//! scanned again, so a visitor's `{{ env.TOKEN }}` stays text.

mod json_template;
mod scanner;

use std::borrow::Cow;

use serde_json::Value;

use crate::expressions::{
    Expression, ExpressionError, Reference, VALUE_DEPTH_MAX, Variables, budget, values,
};

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
        self.check(bytes, is_alone)?;
        budget::count_bytes(bytes);
        self.left = self.left.saturating_sub(bytes);
        Ok(())
    }

    /// Checks that a field may take so many bytes.
    fn check(&self, bytes: usize, is_alone: bool) -> Result<(), ExpressionError> {
        if !is_alone && bytes > FIELD_BYTES_MAX {
            let message = format!("the result has {bytes} bytes; a template may write {FIELD_BYTES_MAX}");
            return Err(ExpressionError(message));
        }
        if bytes > self.left {
            let message = format!("the templates of one step may write {STEP_BYTES_MAX} bytes together");
            return Err(ExpressionError(message));
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
            if values::is_deeper(&value, VALUE_DEPTH_MAX) {
                let message = format!("the value is nested deeper than {VALUE_DEPTH_MAX} levels");
                return Err(ExpressionError(message));
            }
            // In HTML a text is as long as any other; values of other types have no limit of their own.
            let is_alone = escape != Escape::Html || !value.is_string();
            budget.check(size(&value), is_alone)?;
            let value = if escape == Escape::Html { with_escaped_texts(value) } else { value };
            budget.take(size(&value), is_alone)?;
            return Ok(value);
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
                    let value = expression.evaluate(variables)?;
                    // Escaping makes no text shorter, so a large one is refused before it is copied.
                    budget.check(size(&value), false)?;
                    let value = values::text_of(&value);
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

    /// Returns whether every expression only names a member.
    pub(crate) fn names_only(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Expression(expression) => expression.is_path(),
        })
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

/// Returns the size of what a value writes.
fn size(value: &Value) -> usize {
    value.as_str().map_or_else(|| domain::json_bytes(value), str::len)
}

/// Escapes all texts of a value for HTML, names of members too: none of them can carry markup to where it is shown.
fn with_escaped_texts(value: Value) -> Value {
    let html = |text: &str| escaped(text, Escape::Html).into_owned();
    match value {
        Value::String(text) => Value::String(html(&text)),
        Value::Array(list) => list.into_iter().map(with_escaped_texts).collect(),
        Value::Object(object) => {
            let members = object.into_iter().map(|(name, member)| (html(&name), with_escaped_texts(member)));
            Value::Object(members.collect())
        }
        other => other,
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
