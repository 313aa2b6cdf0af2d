//! Evaluates concurrency keys.

use automation::concurrency::RunConcurrency;
use serde_json::Value;
use web::Problem;

/// Returns the concurrency limit and key of a run, and hands back its trigger. A key that does more than read members
/// may be slow, so it is evaluated on the blocking pool.
pub(crate) async fn evaluate_concurrency(
    concurrency: Option<RunConcurrency>,
    trigger: Value,
) -> Result<(Option<(i32, Option<String>)>, Value), Problem> {
    let Some(concurrency) = concurrency else { return Ok((None, trigger)) };
    let is_brief = concurrency.is_brief();
    let evaluate = move || (Some(concurrency.of(&trigger)), trigger);
    if is_brief {
        return Ok(evaluate());
    }
    tokio::task::spawn_blocking(evaluate).await.map_err(|error| {
        tracing::error!(%error, "a concurrency key can't be evaluated");
        Problem::nothing_changed()
    })
}

#[cfg(test)]
mod tests {
    use automation::definition::Concurrency;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_key_is_the_same_on_either_thread() {
        for key in ["{{ trigger.payload }}", "{{ trigger.payload + '' }}"] {
            let concurrency = RunConcurrency::new(&Concurrency { limit: 2, key: Some(key.to_owned()) });
            let evaluated = evaluate_concurrency(Some(concurrency), json!({"payload": "a"})).await.unwrap();
            assert_eq!(evaluated, (Some((2, Some("a".to_owned()))), json!({"payload": "a"})));
        }
    }
}
