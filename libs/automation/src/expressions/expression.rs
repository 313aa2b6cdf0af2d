//! A compiled expression.

use rhai::{AST, Dynamic, EvalAltResult};
use serde_json::Value;

use super::error::{ExpressionError, shorten};
use super::limits::{EXPRESSION_BYTES_MAX, OPERATIONS_MAX};
use super::paths::{self, Reference, Tree};
use super::truth::is_true;
use super::variables::Variables;
use super::{budget, engine, rewrite, values};

/// A compiled expression. It can be kept and shared between threads.
#[derive(Debug, Clone)]
pub struct Expression {
    ast: AST,
    tree: Tree,
    path: Option<Reference>,
}

impl Expression {
    /// Compiles an expression, written without braces.
    ///
    /// # Errors
    /// The syntax is wrong, it has a statement, an unknown function, or it is too long or too deep.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            let message = format!("an expression may have at most {EXPRESSION_BYTES_MAX} bytes");
            return Err(ExpressionError(message));
        }
        if text.trim().is_empty() {
            return Err(ExpressionError("the expression is empty".to_owned()));
        }
        let script = rewrite::to_rhai(text)?;
        let ast = engine::ENGINE.compile_expression(&script).map_err(|error| {
            ExpressionError(format!("{} in `{}`", engine::sentence(&error.0.to_string()), shorten(text)))
        })?;
        let found = paths::inspect(&ast)?;
        Ok(Self { ast, tree: found.tree, path: found.path })
    }

    /// Evaluates the expression. A missing member is null.
    ///
    /// # Errors
    /// An operand has a wrong type, or a limit is exceeded.
    pub fn evaluate(&self, variables: &Variables<'_>) -> Result<Value, ExpressionError> {
        budget::reset();
        if let Some(path) = &self.path {
            let value = variables.read(path)?.unwrap_or(Value::Null);
            budget::count_bytes(values::json_weight(&value));
            return Ok(value);
        }
        let mut scope = variables.scope(&self.tree)?;
        let result = engine::ENGINE.eval_ast_with_scope::<Dynamic>(&mut scope, &self.ast);
        values::to_json(&result.map_err(|error| failure(&error))?)
    }

    /// Evaluates the expression as a condition: false, null, 0, an empty text, list and object are false.
    ///
    /// # Errors
    /// Those of [`Self::evaluate`].
    pub fn holds(&self, variables: &Variables<'_>) -> Result<bool, ExpressionError> {
        self.evaluate(variables).map(|value| is_true(&value))
    }

    /// Returns whether the expression only names a member.
    pub(crate) fn is_path(&self) -> bool {
        self.path.is_some()
    }

    /// Returns what the expression reads.
    pub fn references(&self) -> Vec<Reference> {
        self.tree.references()
    }
}

fn failure(error: &EvalAltResult) -> ExpressionError {
    let message = match error {
        EvalAltResult::ErrorTooManyOperations(_) => format!("it takes more than {OPERATIONS_MAX} operations"),
        EvalAltResult::ErrorDataTooLarge(what, _) => format!("a value is too large: {}", what.to_lowercase()),
        EvalAltResult::ErrorMismatchDataType(expected, actual, _) if expected == "bool" => {
            let actual = engine::type_name(actual);
            format!("`&&` and `||` need true or false, this is {actual}: write `bool(x) && …`")
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            format!("it can't be applied to these types: {}", engine::signature(signature))
        }
        EvalAltResult::ErrorVariableNotFound(name, _) => format!("there is no variable {name}"),
        EvalAltResult::ErrorRuntime(value, _) => value.to_string(),
        other => engine::sentence(&other.to_string()),
    };
    ExpressionError(message)
}
