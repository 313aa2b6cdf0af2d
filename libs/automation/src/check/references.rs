//! Which steps and variables an expression may read at its place.

use domain::pages::MAX_HTML_BYTES;

use super::checker::{Checker, NESTING_MAX, is_identifier};
use super::templated_fields::{Field, templated_fields};
use crate::definition::{Action, Step, TEMPLATE_BYTES_MAX, did_you_mean};
use crate::expressions::{Expression, ExpressionError, Reference};
use crate::templates::{JsonTemplate, Template};

/// Members of `run`.
const RUN_MEMBERS: [&str; 4] = ["id", "startedAt", "isTest", "resumeUrl"];
/// Variables that every expression has.
const ROOTS: [&str; 4] = ["trigger", "steps", "env", "run"];
/// Variables of the elements of a `transform`.
const ELEMENT: [&str; 3] = ["item", "index", "key"];

/// What is visible at a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Visible {
    steps: Vec<String>,
    variables: Vec<String>,
    nesting: usize,
    loops: usize,
    /// The number of steps that stand before this place in the text.
    position: usize,
}

impl Visible {
    pub(super) fn is_in_loop(&self) -> bool {
        self.loops > 0
    }
}

impl Checker<'_> {
    /// Checks a list of steps. Afterwards its steps are visible.
    pub(super) fn list(&mut self, path: &str, steps: &[Step], visible: &mut Visible) {
        if visible.nesting > NESTING_MAX {
            let message = format!("{path}: steps may be nested {NESTING_MAX} deep at most");
            self.push(path, "too_deep", message);
            return;
        }
        for (at, step) in steps.iter().enumerate() {
            if self.is_full() {
                return;
            }
            let path = format!("{path}[{at}]");
            self.references(&path, step, visible);
            self.step(&path, step, visible);
            visible.position += 1;
            let mut afterwards = Vec::new();
            for (below, steps) in step.nested() {
                let mut inner = visible.clone();
                inner.nesting += 1;
                if let Action::ForEach(each) = &step.action {
                    inner.loops += 1;
                    inner.variables.extend([each.variable.clone(), "index".to_owned()]);
                    self.loop_variable(&path, &each.variable);
                }
                self.list(&format!("{path}.{below}"), steps, &mut inner);
                visible.position = inner.position;
                if !matches!(step.action, Action::ForEach(_)) {
                    // What a branch did can be read after the condition; null if it did not run.
                    afterwards.extend(inner.steps.split_off(visible.steps.len()));
                }
            }
            visible.steps.extend(afterwards);
            visible.steps.push(step.options.id.clone());
        }
    }

    fn loop_variable(&mut self, path: &str, name: &str) {
        let field = format!("{path}.as");
        if !is_identifier(name) || ROOTS.contains(&name) || name == "index" {
            let message =
                format!("{field}: a name of letters, digits and _ that no other variable has is needed");
            self.push(&field, "identifier", message);
        }
    }

    fn references(&mut self, path: &str, step: &Step, visible: &Visible) {
        for (below, part) in templated_fields(step) {
            if self.is_full() {
                return;
            }
            let field = format!("{path}.{below}");
            if let Field::Template(text) = part {
                self.length(&field, &below, text);
            }
            let sees_element = matches!(part, Field::ElementExpression(_) | Field::ElementJson(_));
            let found = match part {
                Field::Expression(text) | Field::ElementExpression(text) => {
                    let expression = Expression::parse(text).map_err(|error| {
                        let hint = if text.contains("{{") { " (write it without braces)" } else { "" };
                        (String::new(), ExpressionError(format!("{error}{hint}")))
                    });
                    expression.map(|expression| expression.references())
                }
                Field::Template(text) => Template::parse(text)
                    .map(|template| template.references())
                    .map_err(|error| (String::new(), error)),
                Field::Json(value) | Field::ElementJson(value) => {
                    JsonTemplate::parse(value).map(|template| template.references())
                }
            };
            match found {
                Err((below, error)) => {
                    let field = if below.is_empty() || below.starts_with('[') {
                        format!("{field}{below}")
                    } else {
                        format!("{field}.{below}")
                    };
                    self.push(&field, "template", format!("{field}: {error}"));
                }
                Ok(references) => {
                    for reference in references {
                        if !(self.is_full() || sees_element && ELEMENT.contains(&reference[0].as_str())) {
                            self.reference(&field, &reference, visible);
                        }
                    }
                }
            }
        }
    }

    /// Checks the length of a template in a field that is one text.
    fn length(&mut self, field: &str, name: &str, text: &str) {
        let max = if name == "html" { MAX_HTML_BYTES } else { TEMPLATE_BYTES_MAX };
        if text.len() > max {
            let message = format!("{field} may have at most {max} bytes, this has {}", text.len());
            self.push(field, "too_long", message);
        }
    }

    fn reference(&mut self, field: &str, reference: &Reference, visible: &Visible) {
        let member = reference.get(1).map(String::as_str);
        match (reference[0].as_str(), member) {
            ("trigger", _) => {}
            (name, _) if visible.variables.iter().any(|known| known == name) => {}
            ("steps", Some(id)) => self.step_reference(field, id, visible),
            ("env", Some(name)) => self.has_env(field, name),
            ("run", Some("resumeUrl")) => {
                // A wait at this very position or later in the text; `position` counts the steps before this one.
                if self.last_resumable_wait.is_none_or(|wait| wait <= visible.position) {
                    let message =
                        format!("{field}: run.resumeUrl needs a later step of type wait with resume: true");
                    self.push(field, "reference", message);
                }
            }
            ("run", Some(name)) if RUN_MEMBERS.contains(&name) => {}
            ("run", Some(name)) => {
                let hint = did_you_mean(name, RUN_MEMBERS.into_iter());
                self.push(field, "reference", format!("{field}: run has no member {name}{hint}"));
            }
            (root @ ("steps" | "env" | "run"), None) => {
                let message = format!(
                    "{field}: write {root} with a name that is known beforehand, such as {root}.name"
                );
                self.push(field, "reference", message);
            }
            (name, _) => {
                let known: Vec<&str> =
                    ROOTS.into_iter().chain(visible.variables.iter().map(String::as_str)).collect();
                let hint = did_you_mean(name, known.into_iter());
                self.push(field, "reference", format!("{field}: there is no variable {name}{hint}"));
            }
        }
    }

    fn step_reference(&mut self, field: &str, id: &str, visible: &Visible) {
        if visible.steps.iter().any(|known| known == id) {
            return;
        }
        let message = match self.places.get(id) {
            Some(place) if place.is_in_loop && !visible.is_in_loop() => {
                format!(
                    "{field}: step {id} is inside a loop and can't be read outside it; read the loop's items"
                )
            }
            Some(_) => format!("{field}: step {id} does not run before this one"),
            None if visible.steps.is_empty() => format!("{field}: there is no step {id} before this one"),
            None => {
                let hint = did_you_mean(id, visible.steps.iter().map(String::as_str));
                format!("{field}: there is no step {id}{hint}")
            }
        };
        self.push(field, "unknown_step", message);
    }
}
