//! The limit of active runs of an automation, and the key under which a run counts.

use automation::definition::Concurrency;
use automation::expressions::Variables;
use automation::templates::{Escape, OutputBudget, Template};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A longer key is replaced by its hash: it stands in an index.
const KEY_BYTES_MAX: usize = 200;

/// The limit of an automation, with its key compiled.
#[derive(Debug)]
pub(crate) struct RunConcurrency {
    limit: i32,
    key: Option<Template>,
}

impl RunConcurrency {
    /// Compiles the limit of a checked definition.
    pub(crate) fn new(concurrency: &Concurrency) -> Self {
        let key = concurrency.key.as_deref().and_then(|key| Template::parse(key).ok());
        Self { limit: i32::try_from(concurrency.limit).unwrap_or(i32::MAX), key }
    }

    /// Returns limit and key of a run. A key that can't be evaluated counts as empty: the limit holds all the same.
    pub(crate) fn of(&self, trigger: &Value) -> (i32, Option<String>) {
        let variables = Variables::new().with("trigger", trigger);
        let evaluate = |template: &Template| {
            let key = template.text(&variables, Escape::None, &mut OutputBudget::default());
            short(key.unwrap_or_default())
        };
        (self.limit, self.key.as_ref().map(evaluate))
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

    #[test]
    fn a_key_is_evaluated_and_stays_short() {
        let key = "{{ trigger.payload.email }}".to_owned();
        let concurrency = RunConcurrency::new(&Concurrency { limit: 2, key: Some(key) });
        let of = |email: Value| concurrency.of(&json!({"payload": {"email": email}}));
        assert_eq!(of(json!("a@b.co")), (2, Some("a@b.co".to_owned())));
        assert_eq!(of(json!("x".repeat(201))).1.unwrap().len(), 64);
        assert_eq!(of(json!("a\0b")).1.unwrap().len(), 64, "Postgres stores no NUL");
        assert_eq!(of(Value::Null), (2, Some(String::new())));
        let unkeyed = RunConcurrency::new(&Concurrency { limit: 1, key: None });
        assert_eq!(unkeyed.of(&json!({})), (1, None));
    }
}
