//! What expressions of a run read, and the language that evaluates them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::templates::{Escape, OutputBudget};

/// Evaluates expressions and templates. Pure: the same scope gives the same value.
pub trait Language: Sync {
    /// Evaluates an expression without braces.
    ///
    /// # Errors
    /// The reason, for the automation's owner.
    fn evaluate(&self, expression: &str, scope: &Scope) -> Result<Value, String>;

    /// Replaces every template in the strings of a value. A string that is one template gets the type of its value.
    /// The templates of one step share a budget.
    ///
    /// # Errors
    /// The reason, for the automation's owner.
    fn render(
        &self,
        template: &Value,
        escape: Escape,
        scope: &Scope,
        budget: &mut OutputBudget,
    ) -> Result<Value, String>;
}

/// What is known of a run when its walk begins.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// Id of the run.
    pub id: Uuid,
    /// When the run first started; the only time that expressions can read.
    pub started_at: DateTime<Utc>,
    /// Whether it is a test run, in which `testOutput` replaces effects.
    pub is_test: bool,
    /// What started the run.
    pub trigger: Arc<Value>,
    /// Variables of the automation, an object.
    pub env: Arc<Value>,
    /// Since a link was used: the number of its wait, and the body that it was called with.
    pub resumed: Option<(u32, Value)>,
}

/// What expressions can read at one place of a run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scope {
    trigger: Arc<Value>,
    env: Arc<Value>,
    run: Arc<Value>,
    /// Outputs outside the loops around this place, the outermost first.
    outer: Vec<Arc<Value>>,
    /// Outputs by id, an object.
    steps: Arc<Value>,
    locals: Vec<(String, Arc<Value>)>,
}

impl Scope {
    /// Returns the scope of the first step.
    pub fn new(facts: &RunFacts, resume_url: Option<String>) -> Self {
        let run = json!({
            "id": facts.id,
            "startedAt": facts.started_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "isTest": facts.is_test,
            "resumeUrl": resume_url,
        });
        Self {
            trigger: Arc::clone(&facts.trigger),
            env: Arc::clone(&facts.env),
            run: Arc::new(run),
            outer: Vec::new(),
            steps: Arc::new(Value::Object(Map::new())),
            locals: Vec::new(),
        }
    }

    /// Returns all variables by name. A later object shadows members of an earlier one of the same name.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Value)> {
        let roots = [("trigger", &*self.trigger), ("env", &*self.env), ("run", &*self.run)];
        let steps = self.outer.iter().chain([&self.steps]).map(|steps| ("steps", &**steps));
        roots
            .into_iter()
            .chain(steps)
            .chain(self.locals.iter().map(|(name, value)| (name.as_str(), &**value)))
    }

    /// Returns the output of a step of this loop.
    pub(super) fn output(&self, id: &str) -> Option<&Value> {
        self.steps.get(id)
    }

    pub(super) fn insert_output(&mut self, id: &str, output: Value) {
        if let Value::Object(steps) = Arc::make_mut(&mut self.steps) {
            steps.insert(id.to_owned(), output);
        }
    }

    /// Returns the scope of one element of a loop. Its steps shadow those outside.
    pub(super) fn element(&self, locals: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut scope = self.clone();
        scope.outer.push(std::mem::replace(&mut scope.steps, Arc::new(Value::Object(Map::new()))));
        scope.locals.extend(locals.into_iter().map(|(name, value)| (name, Arc::new(value))));
        scope
    }

    /// Replaces the variables from `depth` on.
    pub(super) fn replace_locals(&mut self, depth: usize, locals: impl IntoIterator<Item = (String, Value)>) {
        self.locals.truncate(depth);
        self.locals.extend(locals.into_iter().map(|(name, value)| (name, Arc::new(value))));
    }

    /// Returns the number of variables of the loops around this place.
    pub(super) fn depth(&self) -> usize {
        self.locals.len()
    }

    pub(super) fn set_resume_url(&mut self, url: Option<String>) {
        if let Value::Object(members) = Arc::make_mut(&mut self.run) {
            members.insert("resumeUrl".to_owned(), url.map_or(Value::Null, Value::String));
        }
    }
}
