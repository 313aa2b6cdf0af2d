//! The limit of active runs of an automation, and the key under which a run counts.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::definition::Concurrency;
use crate::expressions::Variables;
use crate::templates::{Escape, OutputBudget, Template};

/// A longer key is replaced by its hash: it stands in an index.
const KEY_BYTES_MAX: usize = 200;

/// The limit of an automation, with its key compiled. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunConcurrency {
    limit: i32,
    key: Option<Arc<Template>>,
}

impl RunConcurrency {
    /// Compiles the limit of a checked definition.
    pub fn new(concurrency: &Concurrency) -> Self {
        let key = concurrency.key.as_deref().and_then(|key| Template::parse(key).ok());
        Self { limit: i32::try_from(concurrency.limit).unwrap_or(i32::MAX), key: key.map(Arc::new) }
    }

    /// Returns limit and key of a run. A key that can't be evaluated counts as empty: the limit holds all the same.
    pub fn of(&self, trigger: &Value) -> (i32, Option<String>) {
        let variables = Variables::new().with("trigger", trigger);
        let evaluate = |template: &Arc<Template>| {
            let key = template.text(&variables, Escape::None, &mut OutputBudget::default());
            short(key.unwrap_or_default())
        };
        (self.limit, self.key.as_ref().map(evaluate))
    }

    /// Returns whether [`Self::of`] takes less than a millisecond: the key only names members.
    pub fn is_brief(&self) -> bool {
        self.key.as_ref().is_none_or(|key| key.names_only())
    }
}

fn short(key: String) -> String {
    let is_short = key.len() <= KEY_BYTES_MAX && !key.contains('\0');
    if is_short { key } else { hex::encode(Sha256::digest(key.as_bytes())) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keyed(key: &str) -> RunConcurrency {
        RunConcurrency::new(&Concurrency { limit: 2, key: Some(key.to_owned()) })
    }

    #[test]
    fn a_key_is_evaluated_and_stays_short() {
        let concurrency = keyed("{{ trigger.payload.email }}");
        let of = |email: Value| concurrency.of(&json!({"payload": {"email": email}}));
        assert_eq!(of(json!("a@b.co")), (2, Some("a@b.co".to_owned())));
        assert_eq!(of(json!("x".repeat(201))).1.unwrap().len(), 64);
        assert_eq!(of(json!("a\0b")).1.unwrap().len(), 64, "Postgres stores no NUL");
        assert_eq!(of(Value::Null), (2, Some(String::new())));
        let unkeyed = RunConcurrency::new(&Concurrency { limit: 1, key: None });
        assert_eq!(unkeyed.of(&json!({})), (1, None));
    }

    #[test]
    fn a_key_that_only_names_members_is_brief() {
        assert!(keyed("{{ trigger.payload.a }}-{{ trigger.query.b }}").is_brief());
        assert!(!keyed("{{ trigger.payload.a }}-{{ trigger.payload.b + 1 }}").is_brief());
        assert!(RunConcurrency::new(&Concurrency { limit: 1, key: None }).is_brief());
    }
}
