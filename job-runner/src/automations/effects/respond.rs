//! `respond`: the answer to the request that started the run. The control plane, where the request waits, reads
//! it from the run.

use automation::check::is_respond_header;
use automation::execution::Failure;
use contract::Signal;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use store::automations::{ResponseOutcome, store_response};

use super::abort::Abort;
use super::transaction::Transaction;

/// Maximum size of an answer's body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Maximum size of an answer's headers, in bytes: what proxies accept.
const HEADERS_BYTES_MAX: usize = 8 << 10;

/// Stores the answer. The output is the answer.
pub(super) async fn store(
    transaction: &mut Transaction<'_>,
    status: u16,
    headers: &Map<String, Value>,
    body: Option<&Value>,
) -> Result<Value, Abort> {
    check(status, headers, body)?;
    let answer = json!({"status": status, "headers": headers, "body": body});
    let (account_id, run_id) = (transaction.context.account_id, transaction.context.claim.run_id);
    match store_response(&mut transaction.tx, account_id, run_id, &answer).await? {
        ResponseOutcome::Stored => {}
        ResponseOutcome::Answered => {
            return Err(
                Failure::permanent("this run has already answered: only its first `respond` can").into()
            );
        }
        ResponseOutcome::NoRequest => {
            let message = "no request waits for an answer: only runs of http triggers can `respond`";
            return Err(Failure::permanent(message).into());
        }
    }
    transaction.signals.push(Signal::RunsAnswered { run_ids: vec![run_id] });
    Ok(answer)
}

fn check(status: u16, headers: &Map<String, Value>, body: Option<&Value>) -> Result<(), Failure> {
    let mut bytes = 0;
    for (name, value) in headers {
        if !is_respond_header(name, status) {
            return Err(Failure::permanent(format!("headers.{name}: an answer may not have this header")));
        }
        let value = value.as_str().unwrap_or_default();
        if HeaderValue::from_str(value).is_err() {
            let message = format!("headers.{name}: the value has characters that a header can't have");
            return Err(Failure::permanent(message));
        }
        bytes += name.len() + value.len();
    }
    if bytes > HEADERS_BYTES_MAX {
        return Err(Failure::permanent(format!("headers may have at most {} KB", HEADERS_BYTES_MAX >> 10)));
    }
    let bytes = match body {
        Some(Value::String(text)) => text.len(),
        Some(value) => domain::json_bytes(value),
        None => 0,
    };
    if bytes > BODY_BYTES_MAX {
        return Err(Failure::permanent(format!("body may have at most {} MB", BODY_BYTES_MAX >> 20)));
    }
    Ok(())
}
