//! Bounds what all evaluations of one walk may cost together.
//!
//! Each evaluation has limits, but a loop over a transform makes millions of them, and a walk that only computes never
//! gives its thread back.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::{Escape, Language, OutputBudget, RUN_OPERATIONS_MAX, Scope};
use crate::expressions::work;

/// A language that refuses further evaluations when a walk has cost too much.
pub(super) struct WorkLimit<'a, L> {
    language: &'a L,
    spent: AtomicU64,
}

impl<'a, L: Language> WorkLimit<'a, L> {
    pub(super) fn new(language: &'a L) -> Self {
        Self { language, spent: AtomicU64::new(0) }
    }

    /// Evaluations are synchronous, so the work of this thread meanwhile is theirs.
    fn counted<T>(&self, evaluate: impl FnOnce(&L) -> Result<T, String>) -> Result<T, String> {
        if self.spent.load(Ordering::Relaxed) > RUN_OPERATIONS_MAX {
            return Err(format!(
                "the run computes too much: its expressions took more than {RUN_OPERATIONS_MAX} operations"
            ));
        }
        let before = work();
        let value = evaluate(self.language);
        self.spent.fetch_add(work().wrapping_sub(before), Ordering::Relaxed);
        value
    }
}

impl<L: Language> Language for WorkLimit<'_, L> {
    fn evaluate(&self, expression: &str, scope: &Scope) -> Result<Value, String> {
        self.counted(|language| language.evaluate(expression, scope))
    }

    fn render(
        &self,
        template: &Value,
        escape: Escape,
        scope: &Scope,
        budget: &mut OutputBudget,
    ) -> Result<Value, String> {
        self.counted(|language| language.render(template, escape, scope, budget))
    }
}
