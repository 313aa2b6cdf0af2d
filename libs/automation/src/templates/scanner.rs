//! Splits a text into literal pieces and expressions.

use crate::expressions::{Expression, ExpressionError, shorten};

/// One piece of a template.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(String),
    Expression(Expression),
}

/// Maximum number of expressions of one template.
const EXPRESSIONS_MAX: usize = 500;

/// Splits a template and compiles its expressions.
pub(super) fn scan(text: &str) -> Result<Vec<Piece>, ExpressionError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        if open > 0 {
            pieces.push(Piece::Text(rest[..open].to_owned()));
        }
        let begin = text.len() - rest.len() + open;
        let at = || text[..begin].chars().count() + 1;
        let inside = &rest[open + 2..];
        let Some(end) = closing(inside) else {
            let message = format!("`{{{{` at character {} is not closed by `}}}}`", at());
            return Err(ExpressionError(message));
        };
        let expression = Expression::parse(&inside[..end]).map_err(|error| {
            let source = shorten(inside[..end].trim());
            ExpressionError(format!("in `{{{{ {source} }}}}` at character {}: {error}", at()))
        })?;
        pieces.push(Piece::Expression(expression));
        if pieces.len() > 2 * EXPRESSIONS_MAX {
            return Err(ExpressionError(format!(
                "a template may hold at most {EXPRESSIONS_MAX} expressions"
            )));
        }
        rest = &inside[end + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Finds the `}}` that ends an expression: not inside a text, nor one that closes objects.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut quote, mut open, mut at) = (None, 0u32, 0);
    while let Some(byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(own), _) if own == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'{') => open += 1,
            (None, b'}') if open > 0 => open -= 1,
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}
