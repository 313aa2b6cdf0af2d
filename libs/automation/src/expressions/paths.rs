//! Inspects a compiled expression: which values it reads, and that it holds nothing but expressions.

use std::collections::BTreeMap;

use rhai::{AST, ASTFlags, ASTNode, BinaryExpr, Expr, Stmt, Token};

use super::error::ExpressionError;
use super::functions::{self, FUNCTIONS};

/// Maximum number of parts of one expression.
const NODES_MAX: usize = 1_000;

/// A value that an expression reads: the name of a variable and the members below it that are known beforehand, such
/// as `["steps", "lookup", "body"]`.
pub type Reference = Vec<String>;

/// The members that an expression reads, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    /// How often the value itself is read.
    pub(super) reads: usize,
    pub(super) members: BTreeMap<String, Tree>,
}

impl Tree {
    fn add(&mut self, path: &[String]) {
        match path {
            [] => self.reads += 1,
            [name, rest @ ..] => self.members.entry(name.clone()).or_default().add(rest),
        }
    }

    pub(super) fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut Reference, found: &mut Vec<Reference>) {
        if self.reads > 0 {
            found.push(path.clone());
        }
        for (name, tree) in &self.members {
            path.push(name.clone());
            tree.collect(path, found);
            path.pop();
        }
    }
}

pub(super) struct Inspection {
    pub(super) tree: Tree,
    /// The path, if the whole expression is one.
    pub(super) path: Option<Reference>,
}

/// Inspects a compiled expression.
pub(super) fn inspect(ast: &AST) -> Result<Inspection, ExpressionError> {
    let mut tree = Tree::default();
    let mut problem = None;
    let mut nodes = 0;
    let mut path = None;
    ast.walk(&mut |parents: &[ASTNode]| {
        nodes += 1;
        let outcome = if nodes > NODES_MAX {
            Err("it has too many parts".to_owned())
        } else {
            visit(parents, &mut tree).map(|whole| path = path.take().or(whole))
        };
        problem = outcome.err();
        problem.is_none()
    });
    match problem {
        Some(message) => Err(ExpressionError(message)),
        None => Ok(Inspection { tree, path }),
    }
}

/// Checks one part. Returns the path if it is the whole expression.
fn visit(parents: &[ASTNode], tree: &mut Tree) -> Result<Option<Reference>, String> {
    let Some((node, above)) = parents.split_last() else { return Ok(None) };
    let expression = match node {
        ASTNode::Stmt(Stmt::Expr(_)) if above.is_empty() => return Ok(None),
        ASTNode::Stmt(Stmt::FnCall(call, _)) if above.is_empty() => {
            return functions::check_call(&call.name, call.args.len()).map(|()| None);
        }
        ASTNode::Expr(expression) => *expression,
        _ => return Err("it may hold no statements".to_owned()),
    };
    match expression {
        Expr::Stmt(..) | Expr::InterpolatedString(..) | Expr::ThisPtr(..) | Expr::CharConstant(..) => {
            Err("it may hold no statements".to_owned())
        }
        Expr::FnCall(call, _) | Expr::MethodCall(call, _) if call.op_token.is_none() => {
            let is_method = matches!(expression, Expr::MethodCall(..));
            functions::check_call(&call.name, call.args.len() + usize::from(is_method)).map(|()| None)
        }
        Expr::FnCall(call, _)
            if matches!(call.op_token, Some(Token::ExclusiveRange | Token::InclusiveRange)) =>
        {
            Err("`..` is not supported; use slice(x, from, to) or between(x, from, to)".to_owned())
        }
        Expr::Variable(variable, ..) => {
            let name = variable.1.to_string();
            if FUNCTIONS.iter().any(|function| function.rhai_name() == name) {
                return Err(format!("{name} is a function: write {name}(…)"));
            }
            let (chain, is_root) = chain_of(expression, above);
            let mut path = vec![name];
            let is_whole = chain.is_none_or(|chain| members(chain, &mut path));
            tree.add(&path);
            // The statement, the chain if there is one, and the variable.
            let depth = if chain.is_some() { 3 } else { 2 };
            Ok((is_root && is_whole && parents.len() == depth).then_some(path))
        }
        _ => Ok(None),
    }
}

/// Returns the chain `variable.a.b` that begins with a variable, if it begins one.
fn chain_of<'a>(variable: &Expr, above: &[ASTNode<'a>]) -> (Option<&'a Expr>, bool) {
    let Some(ASTNode::Expr(parent)) = above.last() else { return (None, true) };
    let (Expr::Dot(binary, ..) | Expr::Index(binary, ..)) = parent else { return (None, false) };
    if !std::ptr::eq(&raw const binary.lhs, variable) {
        return (None, false);
    }
    // In `list[variable].a` rhai nests the rest of the chain under the index.
    if let Some(ASTNode::Expr(Expr::Index(outer, flags, _))) = above.iter().rev().nth(1)
        && !flags.contains(ASTFlags::BREAK)
        && std::ptr::eq(&raw const outer.rhs, *parent)
    {
        return (None, false);
    }
    (Some(parent), true)
}

/// Appends the constant members of a chain. Returns whether the chain has no others.
fn members(chain: &Expr, path: &mut Reference) -> bool {
    let mut node = chain;
    loop {
        let Expr::Index(binary, flags, _) = node else { return false };
        let BinaryExpr { rhs, .. } = &**binary;
        let (member, next) = match rhs {
            Expr::Index(inner, ..) | Expr::Dot(inner, ..) if !flags.contains(ASTFlags::BREAK) => {
                (&inner.lhs, Some(rhs))
            }
            other => (other, None),
        };
        let Expr::StringConstant(name, _) = member else { return false };
        path.push(name.to_string());
        match next {
            Some(next) => node = next,
            None => return true,
        }
    }
}
